"""Tiers: the units time is cut into. A bucket of a tier holds a total and one slot for each finer unit in it.

Buckets are UTC, for readers in all time zones; a local day begins on a slot boundary of some tier.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from dynamodb_counters._timeline.times import DAY, HOUR, MINUTE, utc

TOTAL: Final = "total"
"""The attribute of a bucket that holds the sum of its slots."""

_FIRST_MOMENT: Final = "0001-01-01T00:00"
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH_YEAR: Final = 1970


@dataclass(frozen=True, slots=True)
class Tier:
    """One unit of time that buckets are made of.

    `letter` names the unit in keys, `seconds` is the length of the longest bucket, `slots` are the slots' attributes in
    order. A bucket is a number: 0 is the one that holds the start of 1970.

    >>> HOURS.locate(90_061), HOURS.text(25)
    ((25, 'm01'), '1970-01-02T01')
    """

    name: str
    letter: str
    seconds: int
    slot_seconds: int
    slots: tuple[str, ...]

    def locate(self, seconds: int) -> tuple[int, str]:
        """The bucket and slot that count a moment."""
        bucket, rest = divmod(seconds, self.seconds)
        return bucket, self.slots[rest // self.slot_seconds]

    def start(self, bucket: int) -> int:
        return bucket * self.seconds

    def end(self, bucket: int) -> int:
        """The first second after a bucket."""
        return self.start(bucket) + self.seconds

    def text(self, bucket: int) -> str:
        """The start of a bucket as keys spell it: string order is time order."""
        return utc(self.start(bucket)).isoformat()[: _TEXT_LENGTHS[self.letter]]

    def has(self, text: str) -> bool:
        """Whether a bucket has this text."""
        try:
            return self.text(self.parse(text)) == text
        except (ValueError, OverflowError):
            return False

    def parse(self, text: str) -> int:
        """The bucket whose `text` this is."""
        moment = datetime.fromisoformat(f"{text}{_FIRST_MOMENT[len(text) :]}+00:00")
        return self.locate(round(moment.timestamp()))[0]


class _Months(Tier):
    """Months have no common length."""

    __slots__ = ()

    def locate(self, seconds: int) -> tuple[int, str]:
        day = date.fromordinal(seconds // DAY + _EPOCH_DAY)
        return (day.year - _EPOCH_YEAR) * 12 + day.month - 1, self.slots[day.day - 1]

    def start(self, bucket: int) -> int:
        years, month = divmod(bucket, 12)
        return (date(_EPOCH_YEAR + years, month + 1, 1).toordinal() - _EPOCH_DAY) * DAY

    def end(self, bucket: int) -> int:
        years, month = divmod(bucket, 12)
        return self.start(bucket) + calendar.monthrange(_EPOCH_YEAR + years, month + 1)[1] * DAY


def _names(prefix: str, first: int, stop: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{number:02d}" for number in range(first, stop))


# "M" is taken by minutes, so months are "N".
MINUTES: Final = Tier("minute", "M", MINUTE, 1, _names("s", 0, 60))
HOURS: Final = Tier("hour", "H", HOUR, MINUTE, _names("m", 0, 60))
DAYS: Final = Tier("day", "D", DAY, HOUR, _names("h", 0, 24))
MONTHS: Final[Tier] = _Months("month", "N", 31 * DAY, DAY, _names("d", 1, 32))

TIERS: Final = (MINUTES, HOURS, DAYS, MONTHS)
"""Finest first."""


def tiers_up_to(precision: float, longest: float) -> tuple[Tier, ...]:
    """The tier that has slots of a precision, then each whose buckets are shorter than the longest window, in seconds.

    >>> [tier.name for tier in tiers_up_to(60, 30 * 86_400)]
    ['hour', 'day']
    """
    finest, *coarser = (tier for tier in TIERS if tier.slot_seconds >= precision)
    return (finest, *(tier for tier in coarser if tier.seconds < longest))


BY_NAME: Final = {tier.name: tier for tier in TIERS}
BY_LETTER: Final = {tier.letter: tier for tier in TIERS}

_TEXT_LENGTHS: Final = {"M": 16, "H": 13, "D": 10, "N": 7}
