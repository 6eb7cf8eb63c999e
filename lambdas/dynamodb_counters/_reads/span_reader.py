"""Readers of one group over spans of time: the intervals that they ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Generic, TypedDict, TypeVar, Unpack

from dynamodb_counters._declarations import Aggregate, Window
from dynamodb_counters._declarations.kinds import require_answerable
from dynamodb_counters._reads.bucket_queries import require_retained
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.calendars import PERIODS, Period, period_start, require_anchor, steps, time_zone
from dynamodb_counters._timeline.intervals import Interval
from dynamodb_counters._timeline.times import seconds_of
from dynamodb_counters.errors import InvalidArgumentError

Declared = TypeVar("Declared", bound=Aggregate | Window)
Counted = TypeVar("Counted")


class Length(TypedDict, total=False):
    """Length of a window as keyword arguments, which add up: ``hours=1, minutes=30``."""

    weeks: float
    days: float
    hours: float
    minutes: float
    seconds: float


class SpanReader(Generic[Declared, Counted]):
    """One group of a declaration that counts by time, over spans of it."""

    def __init__(self, table: Table, declared: Declared, values: Mapping[str, object]) -> None:
        self._table, self._declared, self._values = table, declared, values

    def last(
        self,
        length: timedelta | None = None,
        /,
        *,
        as_of: datetime | None = None,
        consistent: bool = False,
        **parts: Unpack[Length],
    ) -> Counted:
        """Count events in a trailing span of time.

        Parameters
        ----------
        length : timedelta, optional
            Length of the span, two or more units of the window's precision, unless its parts say it. The unit that
            holds the end counts as the last one, so far.
        as_of : datetime, optional
            End of the span, with a time zone. Default: now.
        consistent : bool, optional
            Whether to read strongly consistently, at twice the read units. Default False.
        weeks, days, hours, minutes, seconds : float, optional
            Length of the span, instead of `length`.

        Returns
        -------
        WindowCount
            The count and the interval it covers; of `Percentiles`, a `Distribution`.

        Raises
        ------
        InvalidArgumentError
            An argument is not allowed, or the window no longer retains all of the interval.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").last(hours=24).count  # doctest: +SKIP
        7
        """
        now, until = now_and_until(self._table, as_of)
        interval = trailing(self._declared, until, length, parts)
        require_retained(self._declared, "last", interval.start, now)
        return self._counted([interval], consistent=consistent)[0]

    def calendar(
        self,
        period: Period,
        tz: str | tzinfo = "UTC",
        *,
        anchor: int = 1,
        as_of: datetime | None = None,
        consistent: bool = False,
    ) -> Counted:
        """Count the current local hour, day, week, month or year so far.

        Parameters
        ----------
        period : {"hour", "day", "week", "month", "year"}
            Weeks begin on Monday.
        tz : str or tzinfo, optional
            Time zone of the calendar: an IANA name such as ``"Europe/Berlin"``. Default ``"UTC"``.
        anchor : int, optional
            Day on which months begin, 1 to 31; the last day of a month that is shorter. Default 1.
        as_of : datetime, optional
            A moment in the period, up to which to count, with a time zone. Default: now.
        consistent
            As in `last`.

        Returns
        -------
        WindowCount
            The count and the interval it covers, which ends with the unit of precision that holds `as_of`.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").calendar("month", "Europe/Berlin").count  # doctest: +SKIP
        31
        """
        if period not in PERIODS:
            raise InvalidArgumentError("period", period, "one of " + ", ".join(map(repr, PERIODS)))
        require_anchor(anchor, period)
        now, until = now_and_until(self._table, as_of)
        start, unit = period_start(period, until, time_zone(tz), anchor), self._declared._unit
        require_retained(self._declared, "period", start, now)
        end = Interval.ending_at(until, timedelta(seconds=unit), unit).end
        return self._counted([Interval(start // unit * unit, end)], consistent=consistent)[0]

    def today(self, tz: str | tzinfo = "UTC", *, as_of: datetime | None = None, consistent: bool = False) -> Counted:
        """Count the current local day so far: ``calendar("day", tz)``.

        Parameters
        ----------
        tz, as_of, consistent
            As in `calendar`.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").today("Asia/Kathmandu").count  # doctest: +SKIP
        3
        """
        return self.calendar("day", tz, as_of=as_of, consistent=consistent)

    def between(self, start: datetime, end: datetime, *, consistent: bool = False) -> Counted:
        """Count events between two moments.

        Parameters
        ----------
        start, end : datetime
            With a time zone, such as ``datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Berlin"))``.
        consistent
            As in `last`.

        Returns
        -------
        WindowCount
            The count and the interval it covers: all units of precision that the requested one touches.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").between(monday, tuesday).count  # doctest: +SKIP
        5
        """
        return self._counted([self._around(start, end)], consistent=consistent)[0]

    def series(
        self,
        start: datetime,
        end: datetime,
        *,
        step: timedelta | Period,
        tz: str | tzinfo = "UTC",
        anchor: int = 1,
        consistent: bool = False,
    ) -> list[Counted]:
        """Count step by step, as for a plot: in order, without gaps or overlaps, 0 where nothing was counted.

        Parameters
        ----------
        start, end : datetime
            With a time zone.
        step : timedelta or {"hour", "day", "week", "month", "year"}
            Steps of a length from `start` on, in whole units of the window's precision; or periods of a local calendar,
            the first and last of which are cut off at `start` and `end`.
        tz, anchor, consistent
            As in `calendar`.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").series(monday, sunday, step="day")  # doctest: +SKIP
        """
        whole, unit = self._around(start, end), self._declared._unit
        intervals = steps(whole.start, whole.end, step, time_zone(tz), unit, anchor=anchor)
        return self._counted(intervals, consistent=consistent)

    def _counted(self, intervals: Sequence[Interval], *, consistent: bool) -> list[Counted]:
        """The counts of an interval, or of several that adjoin."""
        raise NotImplementedError

    def _around(self, start: datetime, end: datetime) -> Interval:
        first, last = seconds_of("start", start), seconds_of("end", end)
        if first >= last:
            raise InvalidArgumentError("end", end, "a moment after start")
        require_retained(self._declared, "start", first, self._table.clock())
        return Interval.around(first, last, self._declared._unit)


def now_and_until(table: Table, as_of: datetime | None) -> tuple[float, float]:
    now = table.clock()
    return now, now if as_of is None else seconds_of("as_of", as_of)


def trailing(declared: Aggregate | Window, until: float, length: object, parts: Length) -> Interval:
    """The interval of a trailing span of whole units; of one unit, or named by a finer one, it is refused."""
    span, unit = _length_of(length, parts), declared._unit
    is_finer = any(timedelta(**{name: 1}).total_seconds() < unit for name in parts)
    require_answerable("last", declared, span, dict(parts) if is_finer else None)
    return Interval.ending_at(until, span, unit)


def _length_of(length: object, parts: Length) -> timedelta:
    """Length of a span, by a timedelta or its parts; the precision of a window refuses what is no whole unit."""
    if parts and length is None:
        try:
            return timedelta(**parts)
        except (TypeError, ValueError, OverflowError):
            length = dict(parts)
    elif isinstance(length, timedelta) and not parts:
        return length
    raise InvalidArgumentError("last", length, "a timedelta, or its parts: weeks, days, hours, minutes, seconds")
