"""Tiers: the units time is cut into. A bucket of a tier holds a total and one slot for each finer unit in it.

Everything is UTC: a local day begins on a slot of some tier, wherever it is, but buckets are everybody's.
"""

from __future__ import annotations

import calendar
import math
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

    Parameters
    ----------
    name : str
        The unit.
    letter : str
        What stands for it in keys.
    seconds : int
        Length of a bucket; of the longest one where they differ.
    slot_seconds : int
        Length of a slot.
    slots : tuple of str
        Attributes that hold the slots, in order.

    Examples
    --------
    >>> HOURS.place(90_061), HOURS.text(25)
    ((25, 'm01'), '1970-01-02T01')
    """

    name: str
    letter: str
    seconds: int
    slot_seconds: int
    slots: tuple[str, ...]

    def place(self, seconds: int) -> tuple[int, str]:
        """Tell where a moment is counted.

        Parameters
        ----------
        seconds : int
            Seconds since 1970.

        Returns
        -------
        tuple of int and str
            Bucket, counted from the one that holds the start of 1970, and slot.
        """
        bucket, rest = divmod(seconds, self.seconds)
        return bucket, self.slots[rest // self.slot_seconds]

    def start(self, bucket: int) -> int:
        """Give the first second of a bucket."""
        return bucket * self.seconds

    def end(self, bucket: int) -> int:
        """Give the first second after a bucket."""
        return self.start(bucket) + self.seconds

    def touched(self, seconds: float, loose_ends: int = 2) -> int:
        """Count the buckets that an interval touches at most.

        Parameters
        ----------
        seconds : float
            Length of the interval.
        loose_ends : int, optional
            How many of its ends may lie within a bucket: 1 or 2. Default 2.

        Returns
        -------
        int
            Buckets.
        """
        return math.ceil(seconds / self.seconds) + loose_ends - 1

    def text(self, bucket: int) -> str:
        """Write the start of a bucket as it stands in a key; string order is time order."""
        return utc(self.start(bucket)).isoformat()[: _TEXT_LENGTHS[self.letter]]

    def parse(self, text: str) -> int:
        """Give the bucket that `text` stands for."""
        moment = datetime.fromisoformat(f"{text}{_FIRST_MOMENT[len(text) :]}+00:00")
        return self.place(round(moment.timestamp()))[0]


class _Months(Tier):
    """Months have no common length."""

    __slots__ = ()

    def place(self, seconds: int) -> tuple[int, str]:
        day = date.fromordinal(seconds // DAY + _EPOCH_DAY)
        return (day.year - _EPOCH_YEAR) * 12 + day.month - 1, self.slots[day.day - 1]

    def start(self, bucket: int) -> int:
        years, month = divmod(bucket, 12)
        return (date(_EPOCH_YEAR + years, month + 1, 1).toordinal() - _EPOCH_DAY) * DAY

    def end(self, bucket: int) -> int:
        years, month = divmod(bucket, 12)
        return self.start(bucket) + calendar.monthrange(_EPOCH_YEAR + years, month + 1)[1] * DAY

    def touched(self, seconds: float, loose_ends: int = 2) -> int:
        del loose_ends  # It is never cut where a coarser tier begins: there is none.
        days = math.ceil(seconds / DAY)
        # The most are touched from the last day of a month on; four years hold every order of month lengths.
        return max(self.place(self.end(month) + (days - 1) * DAY - 1)[0] - month + 1 for month in range(48))


def _names(prefix: str, first: int, stop: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{number:02d}" for number in range(first, stop))


# "M" of month would be the minute's, and a key once written keeps its letter.
MINUTES: Final = Tier("minute", "M", MINUTE, 1, _names("s", 0, 60))
HOURS: Final = Tier("hour", "H", HOUR, MINUTE, _names("m", 0, 60))
DAYS: Final = Tier("day", "D", DAY, HOUR, _names("h", 0, 24))
MONTHS: Final[Tier] = _Months("month", "N", 31 * DAY, DAY, _names("d", 1, 32))

TIERS: Final = (MINUTES, HOURS, DAYS, MONTHS)
"""All of them, finest first."""

BY_NAME: Final = {tier.name: tier for tier in TIERS}
BY_LETTER: Final = {tier.letter: tier for tier in TIERS}

_TEXT_LENGTHS: Final = {"M": 16, "H": 13, "D": 10, "N": 7}
