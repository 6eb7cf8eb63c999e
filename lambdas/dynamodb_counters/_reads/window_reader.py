"""One group of a window: trailing, by calendar, as series, compared, against a limit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from typing import TypedDict, Unpack

from dynamodb_counters._items.decimals import Number, require_storable
from dynamodb_counters._reads.bucket_queries import count_intervals, count_series, require_retained
from dynamodb_counters._reads.statements import BillingReader
from dynamodb_counters._reads.window_counts import Comparison, WindowCount
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.calendars import PERIODS, Period, period_start, require_anchor, steps, time_zone
from dynamodb_counters._timeline.intervals import Interval
from dynamodb_counters._timeline.times import seconds_of
from dynamodb_counters.errors import InvalidArgumentError


class Length(TypedDict, total=False):
    """Length of a window as keyword arguments, which add up: ``hours=1, minutes=30``."""

    weeks: float
    days: float
    hours: float
    minutes: float
    seconds: float


class WindowReader(BillingReader):
    """One group of a window, to be counted over spans of time. Made by `Counters.window`.

    Each call reads the table; all its Queries run at once. Every result states the interval it covers, which differs
    from the requested one by less than a unit of the window's precision at either end.

    Examples
    --------
    >>> jobs = counters.window(JOBS, customer="c1")  # doctest: +SKIP
    >>> jobs.last(hours=24).count, jobs.today("Europe/Berlin").count  # doctest: +SKIP
    (7, 3)
    """

    def last(
        self,
        length: timedelta | None = None,
        /,
        *,
        as_of: datetime | None = None,
        consistent: bool = False,
        **parts: Unpack[Length],
    ) -> WindowCount:
        """Count events in a trailing span of time.

        Parameters
        ----------
        length : timedelta, optional
            Length of the span, in whole units of the window's precision, unless its parts say it.
        as_of : datetime, optional
            End of the span, with a time zone. Default: now.
        consistent : bool, optional
            Whether to read strongly consistently, at twice the read units. Default False.
        weeks, days, hours, minutes, seconds : float, optional
            Length of the span, instead of `length`.

        Returns
        -------
        WindowCount
            The count and the interval it covers.

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
        interval = Interval.ending_at(until, length_of(length, parts), self._window._unit)
        require_retained(self._window, "last", interval.start, now)
        return self._count(interval, consistent=consistent)[0]

    def compare(
        self,
        length: timedelta | None = None,
        /,
        *,
        as_of: datetime | None = None,
        consistent: bool = False,
        **parts: Unpack[Length],
    ) -> Comparison:
        """Compare a trailing span of time with the same length before it.

        Parameters
        ----------
        length, as_of, consistent, weeks, days, hours, minutes, seconds
            As in `last`; the window's retention must be at least twice the length.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").compare(days=7).ratio  # doctest: +SKIP
        0.5
        """
        now, until = now_and_until(self._table, as_of)
        current = Interval.ending_at(until, length_of(length, parts), self._window._unit)
        previous = Interval(2 * current.start - current.end, current.start)
        require_retained(self._window, "last", previous.start, now)
        before, after = self._count(previous, current, consistent=consistent)
        return Comparison(after, before)

    def allow(
        self,
        limit: Number,
        length: timedelta | None = None,
        /,
        *,
        n: Number = 1,
        as_of: datetime | None = None,
        consistent: bool = False,
        **parts: Unpack[Length],
    ) -> bool:
        """Return whether `n` more keep the count of a trailing span of time within a limit.

        Ask before the call is served: of at most 300, call 300 is allowed and call 301 is not. The unit of precision in
        which the span begins counts whole, so a refusal may come early by what happened in it. The stream counts an
        event a moment after it was accepted, so a group may exceed its limit by what arrives in that moment;
        `Counters.leases` hold a limit exactly.

        Parameters
        ----------
        limit : int or Decimal
            The highest count allowed.
        n : int or Decimal, optional
            Amount that the call adds to the count. Default 1.
        length, as_of, consistent, weeks, days, hours, minutes, seconds
            As in `last`.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").allow(300, hours=24)  # doctest: +SKIP
        True
        """
        require_storable("limit", limit)
        if require_storable("n", n) <= 0:
            raise InvalidArgumentError("n", n, "a number above 0")
        now, until = now_and_until(self._table, as_of)
        span = length_of(length, parts)
        # The bucket of the unit in which the span begins ends after that moment, so it is retained as long.
        require_retained(self._window, "last", until - span.total_seconds(), now)
        interval = Interval.covering(until, span, self._window._unit)
        return self._count(interval, consistent=consistent)[0].count + n <= limit

    def calendar(
        self,
        period: Period,
        tz: str | tzinfo = "UTC",
        *,
        anchor: int = 1,
        as_of: datetime | None = None,
        consistent: bool = False,
    ) -> WindowCount:
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
        start, unit = period_start(period, until, time_zone(tz), anchor), self._window._unit
        require_retained(self._window, "period", start, now)
        end = Interval.ending_at(until, timedelta(seconds=unit), unit).end
        return self._count(Interval(start // unit * unit, end), consistent=consistent)[0]

    def today(
        self, tz: str | tzinfo = "UTC", *, as_of: datetime | None = None, consistent: bool = False
    ) -> WindowCount:
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

    def between(self, start: datetime, end: datetime, *, consistent: bool = False) -> WindowCount:
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
        first, last = self._checked(start, end)
        return self._count(Interval.around(first, last, self._window._unit), consistent=consistent)[0]

    def series(
        self,
        start: datetime,
        end: datetime,
        *,
        step: timedelta | Period,
        tz: str | tzinfo = "UTC",
        anchor: int = 1,
        consistent: bool = False,
    ) -> list[WindowCount]:
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
        first, last = self._checked(start, end)
        intervals = steps(first, last, step, time_zone(tz), self._window._unit, anchor=anchor)
        return count_series(self._table, self._window, self._values, intervals, consistent=consistent)

    def _count(self, *intervals: Interval, consistent: bool) -> Sequence[WindowCount]:
        asked = [(self._window, self._values, interval) for interval in intervals]
        return count_intervals(self._table, asked, consistent=consistent)

    def _checked(self, start: datetime, end: datetime) -> tuple[float, float]:
        first, last = seconds_of("start", start), seconds_of("end", end)
        if first >= last:
            raise InvalidArgumentError("end", end, "a moment after start")
        require_retained(self._window, "start", first, self._table.clock())
        return first, last


def now_and_until(table: Table, as_of: datetime | None) -> tuple[float, float]:
    now = table.clock()
    return now, now if as_of is None else seconds_of("as_of", as_of)


def length_of(length: object, parts: Length) -> timedelta:
    """Length of a span, by a timedelta or its parts; the precision of a window refuses what is no whole unit."""
    if parts and length is None:
        try:
            return timedelta(**parts)
        except (TypeError, ValueError, OverflowError):
            length = dict(parts)
    elif isinstance(length, timedelta) and not parts:
        return length
    raise InvalidArgumentError("last", length, "a timedelta, or its parts: weeks, days, hours, minutes, seconds")
