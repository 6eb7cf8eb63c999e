"""Where the hours, days, weeks, months and years of a time zone begin, across clock changes.

A local day begins the first time its clocks reach midnight, or the moment they skip it. So a day has 23 or 25 hours
where clocks change, and the periods of a zone follow each other without gap or overlap. Weeks begin on Monday,
months on their anchor, such as the 15th, or on the last day of a month that is shorter.
"""

from __future__ import annotations

import math
from calendar import monthrange
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Final, Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dynamodb_counters._timeline.tiers import DAY, HOUR, Interval, utc
from dynamodb_counters.errors import InvalidArgumentError

Period: TypeAlias = Literal["hour", "day", "week", "month", "year"]

PERIODS: Final[tuple[str, ...]] = get_args(Period)
MAX_STEPS: Final = 10_000

_SHORTEST: Final = {"hour": HOUR, "day": DAY, "week": 7 * DAY, "month": 28 * DAY, "year": 365 * DAY}
"""The shortest length of each period, in seconds; where clocks change, an hour less."""

_LAST_DAY: Final = 31


def time_zone(tz: str | tzinfo) -> tzinfo:
    if isinstance(tz, tzinfo):
        return tz
    if tz == "UTC":
        return UTC
    try:
        return ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        hint = "an IANA time zone; `pip install tzdata` where the system has no time zone data"
        raise InvalidArgumentError("tz", tz, hint) from None


def require_anchor(anchor: int, period: object) -> None:
    """Refuse a first day that no month has, or that another period cannot have."""
    if type(anchor) is not int or not 1 <= anchor <= (_LAST_DAY if period == "month" else 1):
        raise InvalidArgumentError("anchor", anchor, "1 to 31 of months, else 1")


def period_start(period: str, moment: float, zone: tzinfo, anchor: int = 1) -> int:
    """The second at which the local period that holds a moment began.

    >>> utc(period_start("day", 1_648_400_000, time_zone("Europe/Berlin"))).isoformat()
    '2022-03-26T23:00:00+00:00'
    """
    if period == "hour":
        local = _local(math.floor(moment), zone)
        return math.floor(moment) - local.minute * 60 - local.second
    first = _first_day(period, _local(moment, zone).date(), anchor)
    following = _midnight(_next(period, first, anchor), zone)
    # Where clocks go back over midnight, the date goes back for a while too; the period does not.
    return following if following <= moment else _midnight(first, zone)


def periods(period: str, start: float, end: float, zone: tzinfo, anchor: int = 1) -> Iterator[int]:
    """The seconds at which local periods begin: the first at or before `start`, the last before `end`."""
    begin = period_start(period, start, zone, anchor)
    day = _local(begin, zone).date()
    while begin < end:
        yield begin
        if period == "hour":
            local = _local(begin, zone)
            begin += HOUR - local.minute * 60 - local.second
        else:
            day = _next(period, day, anchor)
            begin = _midnight(day, zone)


def steps(
    start: float, end: float, step: timedelta | str, zone: tzinfo, precision: int, *, anchor: int = 1
) -> list[Interval]:
    """Adjoining intervals on whole units of precision (seconds): of one length, or the periods of a calendar.

    A calendar's first and last period are cut off at `start` and `end`.
    """
    require_anchor(anchor, step)
    whole = Interval.around(start, end, precision)
    if isinstance(step, timedelta):
        unit = timedelta(seconds=precision)
        if step < unit or step % unit:
            raise InvalidArgumentError("step", step, f"a multiple of the precision, {unit}")
        length = step // timedelta(seconds=1)
    elif step not in PERIODS or (length := _SHORTEST[step]) < precision:
        raise InvalidArgumentError("step", step, f"a timedelta or one of {PERIODS}, no shorter than the precision")
    if (whole.end - whole.start) / length > MAX_STEPS:
        raise InvalidArgumentError("step", step, f"a step that makes at most {MAX_STEPS} intervals")
    if isinstance(step, timedelta):
        begins: Iterable[int] = range(whole.start, whole.end, length)
    else:
        begins = (begin // precision * precision for begin in periods(step, whole.start, whole.end, zone, anchor))
    edges = sorted({whole.start, *(begin for begin in begins if begin > whole.start), whole.end})
    return [Interval(one, two) for one, two in pairwise(edges)]


def _local(moment: float, zone: tzinfo) -> datetime:
    return utc(moment).astimezone(zone)


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
    if _local(start, zone).replace(tzinfo=None) == wall:
        return start
    # The clocks skip midnight: the offsets before and after the change give moments on both sides of it.
    before = math.floor(wall.replace(tzinfo=zone, fold=1).timestamp())
    while before < start:
        middle = (before + start) // 2
        if _local(middle, zone).replace(tzinfo=None) < wall:
            before = middle + 1
        else:
            start = middle
    return start
