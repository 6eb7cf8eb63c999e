"""Tiers: the units time is cut into, and the Queries whose buckets add up to an interval.

See docs/windows.md. Whole buckets count by their total, the first and last by their slots, so one item counts each
moment of the interval. The periods of a zone follow each other without gap or overlap.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dynamodb_counters.errors import InvalidArgumentError

DAY: Final = 86_400
HOUR: Final = 3600
MINUTE: Final = 60
# 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: buckets outside this range have no name.
FIRST_SECOND: Final = -62_135_596_800
LAST_SECOND: Final = 253_402_300_799
TOTAL: Final = "total"  # The attribute of a bucket that holds the sum of its slots.
Period: TypeAlias = Literal["hour", "day", "week", "month", "year"]
PERIODS: Final[tuple[str, ...]] = get_args(Period)
MAX_STEPS: Final = 10_000
ANCHORS: Final = "1 to 31 of months, else 1"

_FIRST_MOMENT: Final = "0001-01-01T00:00"
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH_YEAR: Final = 1970
_TEXT_LENGTHS: Final = {"M": 16, "H": 13, "D": 10, "N": 7}
# The shortest length of each period, in seconds; where clocks change, an hour less.
_SHORTEST: Final = {"hour": HOUR, "day": DAY, "week": 7 * DAY, "month": 28 * DAY, "year": 365 * DAY}
_QUERY_OVERHEAD: Final = 0.5  # Read units that the thread and connection of one more Query are taken to cost.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
_READ_BYTES: Final = 4096


def utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def seconds_of(argument: str, moment: datetime) -> float:
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidArgumentError(argument, moment, "a datetime with a time zone")
    return moment.timestamp()


@dataclass(frozen=True, slots=True)
class Tier:
    """One unit of time that buckets are made of.

    `letter` names the unit in keys, `seconds` is the length of the longest bucket, `slots` are the slots' attributes in
    order. A bucket is a number: 0 is the one that holds the start of 1970. `item_bytes` is the size of a full one: 75
    bytes, 6 per slot with a number of up to four digits, and 72 per watermark of a shard, which lasts about 4 hours.
    """

    name: str
    letter: str
    seconds: int
    slot_seconds: int
    slots: tuple[str, ...]
    item_bytes: int

    def locate(self, seconds: int) -> tuple[int, str]:
        bucket, rest = divmod(seconds, self.seconds)
        return bucket, self.slots[rest // self.slot_seconds]

    def start(self, bucket: int) -> int:
        return bucket * self.seconds

    def end(self, bucket: int) -> int:
        """Return the first second after a bucket."""
        return self.start(bucket) + self.seconds

    def text(self, bucket: int) -> str:
        """Return the start of a bucket as keys spell it: string order is time order."""
        return utc(self.start(bucket)).isoformat()[: _TEXT_LENGTHS[self.letter]]

    def parse(self, text: str) -> int:
        moment = datetime.fromisoformat(f"{text}{_FIRST_MOMENT[len(text) :]}+00:00")
        return self.locate(round(moment.timestamp()))[0]


class _Months(Tier):
    __slots__ = ()

    def locate(self, seconds: int) -> tuple[int, str]:
        day = date.fromordinal(seconds // DAY + _EPOCH_DAY)
        return (day.year - _EPOCH_YEAR) * 12 + day.month - 1, self.slots[day.day - 1]

    def start(self, bucket: int) -> int:
        years, month = divmod(bucket, 12)
        return (date(_EPOCH_YEAR + years, month + 1, 1).toordinal() - _EPOCH_DAY) * DAY

    def end(self, bucket: int) -> int:
        years, month = divmod(bucket, 12)
        return self.start(bucket) + monthrange(_EPOCH_YEAR + years, month + 1)[1] * DAY


def _slots(prefix: str, first: int, stop: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{number:02d}" for number in range(first, stop))


# "M" is taken by minutes, so months, which have no common length, are "N".
MINUTES: Final = Tier("minute", "M", MINUTE, 1, _slots("s", 0, 60), 507)
HOURS: Final = Tier("hour", "H", HOUR, MINUTE, _slots("m", 0, 60), 579)
DAYS: Final = Tier("day", "D", DAY, HOUR, _slots("h", 0, 24), 723)
MONTHS: Final[Tier] = _Months("month", "N", 31 * DAY, DAY, _slots("d", 1, 32), 981)
TIERS: Final = (MINUTES, HOURS, DAYS, MONTHS)  # Finest first.
BY_NAME: Final = {tier.name: tier for tier in TIERS}
BY_LETTER: Final = {tier.letter: tier for tier in TIERS}


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time in seconds since 1970, start included, end excluded, within the years 1 to 9999."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not (self.start >= FIRST_SECOND and self.end <= LAST_SECOND):
            raise InvalidArgumentError("interval", (self.start, self.end), "seconds within the years 1 to 9999")

    @classmethod
    def ending_at(cls, as_of: float, last: timedelta, precision: int = MINUTE) -> Interval:
        """Return the interval of length `last` that ends with the whole unit of precision (seconds) around `as_of`."""
        unit = timedelta(seconds=precision)
        if not isinstance(last, timedelta) or last < unit or last % unit:
            raise InvalidArgumentError("last", last, f"a timedelta that is a multiple of the precision, {unit}")
        # Whole, so that a count as of now holds everything that has happened.
        end = (math.floor(as_of) // precision + 1) * precision
        return cls(end - last // timedelta(seconds=1), end)

    @classmethod
    def around(cls, start: float, end: float, precision: int) -> Interval:
        """Return the shortest interval of whole units of precision (seconds) that holds another."""
        return cls(math.floor(start) // precision * precision, math.ceil(math.ceil(end) / precision) * precision)


class Span(NamedTuple):
    """Span of one Query: an interval that begins and ends on slots of a tier."""

    tier: Tier
    interval: Interval

    @property
    def buckets(self) -> tuple[int, int]:
        return self.tier.locate(self.interval.start)[0], self.tier.locate(self.interval.end - 1)[0]


def plan_queries(tiers: tuple[Tier, ...], interval: Interval) -> list[Span]:
    """Return the cheapest Queries that cover an interval once; the finest tier, the first, has slots at both ends."""
    if interval.start >= interval.end:
        return []
    finest_only = [Span(tiers[0], interval)]
    if len(tiers) == 1:
        return finest_only
    *finer, coarsest = tiers
    unit = coarsest.slot_seconds
    start, end = -(-interval.start // unit) * unit, interval.end // unit * unit
    if start >= end:
        return plan_queries(tuple(finer), interval)
    ends = (Interval(interval.start, start), Interval(end, interval.end))
    finer_spans = [span for part in ends for span in plan_queries(tuple(finer), part)]
    return min([Span(coarsest, Interval(start, end)), *finer_spans], finest_only, key=read_cost)


def read_cost(spans: Sequence[Span]) -> float:
    """Return the read units of Queries over full buckets: half of the started 4 KB, and their overhead."""
    sizes = [(last - first + 1) * span.tier.item_bytes for span in spans for first, last in [span.buckets]]
    return sum(_QUERY_OVERHEAD + math.ceil(size / _READ_BYTES) / 2 for size in sizes)


def time_zone(tz: str | tzinfo) -> tzinfo:
    zone = UTC if tz == "UTC" else tz
    if isinstance(zone, tzinfo):
        return zone
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        hint = "an IANA time zone; `pip install tzdata` where the system has no time zone data"
        raise InvalidArgumentError("tz", tz, hint) from None


def require_anchor(anchor: int, period: object) -> None:
    if type(anchor) is not int or not 1 <= anchor <= (31 if period == "month" else 1):
        raise InvalidArgumentError("anchor", anchor, ANCHORS)


def period_start(period: str, moment: float, zone: tzinfo, anchor: int = 1) -> int:
    if period == "hour":
        local = datetime.fromtimestamp(math.floor(moment), zone)
        return math.floor(moment) - local.minute * 60 - local.second
    first = _first_day(period, datetime.fromtimestamp(moment, zone).date(), anchor)
    following = _midnight(_next(period, first, anchor), zone)
    # Where clocks go back over midnight, the date goes back for a while too; the period does not.
    return following if following <= moment else _midnight(first, zone)


def periods(period: str, start: float, end: float, zone: tzinfo, anchor: int = 1) -> Iterator[int]:
    """Yield the seconds at which local periods begin: the first at or before `start`, the last before `end`."""
    begin = period_start(period, start, zone, anchor)
    day = datetime.fromtimestamp(begin, zone).date()
    while begin < end:
        yield begin
        if period == "hour":
            local = datetime.fromtimestamp(begin, zone)
            begin += HOUR - local.minute * 60 - local.second
        else:
            day = _next(period, day, anchor)
            begin = _midnight(day, zone)


def steps(whole: Interval, step: timedelta | str, zone: tzinfo, anchor: int, precision: int) -> list[Interval]:
    """Return adjoining intervals on units of precision (seconds): a length's, or a calendar's, cut off at the ends."""
    if isinstance(step, timedelta):
        unit = timedelta(seconds=precision)
        if step < unit or step % unit:
            raise InvalidArgumentError("step", step, f"a multiple of the precision, {unit}")
        length = step // timedelta(seconds=1)
        begins: Iterable[int] = range(whole.start, whole.end, length)
    elif step not in PERIODS or (length := _SHORTEST[step]) < precision:
        raise InvalidArgumentError("step", step, f"a timedelta or one of {PERIODS}, no shorter than the precision")
    else:
        begins = (begin // precision * precision for begin in periods(step, whole.start, whole.end, zone, anchor))
    if (whole.end - whole.start) / length > MAX_STEPS:
        raise InvalidArgumentError("step", step, f"a step that makes at most {MAX_STEPS} intervals")
    edges = sorted({whole.start, *(begin for begin in begins if begin > whole.start), whole.end})
    return [Interval(start, end) for start, end in pairwise(edges)]


def _first_day(period: str, day: date, anchor: int) -> date:
    if period == "week":
        return day - timedelta(days=day.weekday())
    if period == "month":
        first = _anchored(day, anchor)
        return first if first <= day else _anchored(day.replace(day=1) - timedelta(days=1), anchor)
    return day.replace(month=1, day=1) if period == "year" else day


def _anchored(day: date, anchor: int) -> date:
    return day.replace(day=min(anchor, monthrange(day.year, day.month)[1]))


def _next(period: str, first: date, anchor: int) -> date:
    # 28 + 4 days after its first day lies in the next month, whatever its length; so do 365 + 2 in the next year.
    days = _SHORTEST[period] // DAY + {"month": 4, "year": 2}.get(period, 0)
    return _first_day(period, first + timedelta(days=days), anchor)


def _midnight(day: date, zone: tzinfo) -> int:
    wall = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - a wall clock's reading
    start = math.floor(wall.replace(tzinfo=zone).timestamp())
    if datetime.fromtimestamp(start, zone).replace(tzinfo=None) == wall:
        return start
    # The clocks skip midnight: the offsets before and after the change give moments on both sides of it.
    moments = range(math.floor(wall.replace(tzinfo=zone, fold=1).timestamp()), start)
    return moments.start + bisect_left(
        moments, wall, key=lambda moment: datetime.fromtimestamp(moment, zone).replace(tzinfo=None)
    )
