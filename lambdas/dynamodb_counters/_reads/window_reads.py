"""The windows that `Counters` reads: trailing, by calendar, as series, compared, against a limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, tzinfo

from dynamodb_counters._declarations import Window
from dynamodb_counters._declarations.kinds import require_window
from dynamodb_counters._items.decimals import Number, require_storable
from dynamodb_counters._reads.bucket_queries import count_intervals, count_series, require_retained
from dynamodb_counters._reads.window_counts import Comparison, WindowCount
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.calendars import PERIODS, Period, period_start, steps, time_zone
from dynamodb_counters._timeline.intervals import Interval
from dynamodb_counters._timeline.times import seconds_of
from dynamodb_counters.errors import InvalidArgumentError


class WindowReads:
    """Reads windows of one table. Part of `Counters`.

    Every result states the interval it covers, which differs from the requested one by less than a unit of the window's
    precision at either end. All Queries of a call run at once.
    """

    _table: Table

    def window(
        self,
        window: Window,
        values: Mapping[str, object],
        *,
        last: timedelta,
        as_of: datetime | None = None,
        consistent: bool = False,
    ) -> WindowCount:
        """Count events in the trailing `last`.

        Parameters
        ----------
        window : Window
        values : mapping of str to str or number
            The group: a value per field.
        last : timedelta
            Length of the window, in whole units of its precision.
        as_of : datetime, optional
            End of the window, with a time zone. Default: now.
        consistent : bool, optional
            Whether to read strongly consistently, at twice the read units. Default False.

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
        >>> counters.window(JOBS, {"customer": "c1"}, last=timedelta(hours=24)).count  # doctest: +SKIP
        7
        """
        return self.window_many([(window, values)], last=last, as_of=as_of, consistent=consistent)[0]

    def window_many(
        self,
        wanted: Iterable[tuple[Window, Mapping[str, object]]],
        *,
        last: timedelta,
        as_of: datetime | None = None,
        consistent: bool = False,
    ) -> list[WindowCount]:
        """Count events in the trailing `last` for several groups or windows at once, in their order.

        Parameters
        ----------
        wanted : iterable of (Window, mapping)
            Windows with the values of their groups.
        last, as_of, consistent
            As in `window`.

        Examples
        --------
        >>> counters.window_many([(JOBS, c1), (JOBS, c2)], last=timedelta(hours=24))  # doctest: +SKIP
        """
        now, until = self._now_and_until(as_of)
        asked = []
        for window, values in wanted:
            require_window(window)
            interval = Interval.ending_at(until, last, window.unit)
            require_retained(window, "last", interval.start, now)
            asked.append((window, values, interval))
        return count_intervals(self._table, asked, consistent=consistent)

    def compare(
        self,
        window: Window,
        values: Mapping[str, object],
        *,
        last: timedelta,
        as_of: datetime | None = None,
        consistent: bool = False,
    ) -> Comparison:
        """Compare the trailing `last` with the same length before it.

        Parameters
        ----------
        window : Window
            Its retention must be at least twice `last`.
        values, last, as_of, consistent
            As in `window`.

        Examples
        --------
        >>> counters.compare(JOBS, {"customer": "c1"}, last=timedelta(days=7)).ratio  # doctest: +SKIP
        0.5
        """
        require_window(window)
        now, until = self._now_and_until(as_of)
        current = Interval.ending_at(until, last, window.unit)
        previous = Interval(2 * current.start - current.end, current.start)
        require_retained(window, "last", previous.start, now)
        asked = [(window, values, previous), (window, values, current)]
        before, after = count_intervals(self._table, asked, consistent=consistent)
        return Comparison(after, before)

    def allow(
        self,
        window: Window,
        values: Mapping[str, object],
        limit: Number,
        *,
        last: timedelta,
        n: Number = 1,
        as_of: datetime | None = None,
        consistent: bool = False,
    ) -> bool:
        """Return whether `n` more keep a group's count in the trailing `last` within a limit.

        Ask before the call is served: of at most 300, call 300 is allowed and call 301 is not. The unit of precision in
        which `last` begins counts whole, so a refusal may come early by what happened in it. The stream counts an event
        a moment after it was accepted, so a group may exceed its limit by what arrives in that moment; `leases` hold a
        limit exactly.

        Parameters
        ----------
        limit : int or Decimal
            The highest count allowed.
        n : int or Decimal, optional
            What the call adds to the count. Default 1.
        window, values, last, as_of, consistent
            As in `window`.

        Examples
        --------
        >>> counters.allow(JOBS, {"customer": "c1"}, 300, last=timedelta(hours=24))  # doctest: +SKIP
        True
        """
        require_storable("limit", limit)
        if require_storable("n", n) <= 0:
            raise InvalidArgumentError("n", n, "a number above 0")
        require_window(window)
        now, until = self._now_and_until(as_of)
        # The bucket of the unit in which `last` begins ends after that moment, so it is retained as long.
        require_retained(window, "last", until - last.total_seconds(), now)
        asked = [(window, values, Interval.covering(until, last, window.unit))]
        return count_intervals(self._table, asked, consistent=consistent)[0].count + n <= limit

    def calendar(
        self,
        window: Window,
        values: Mapping[str, object],
        period: Period,
        *,
        tz: str | tzinfo = "UTC",
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
        as_of : datetime, optional
            A moment in the period, up to which to count, with a time zone. Default: now.
        window, values, consistent
            As in `window`.

        Returns
        -------
        WindowCount
            The count and the interval it covers, which ends with the unit of precision that holds `as_of`.

        Examples
        --------
        >>> counters.calendar(JOBS, {"customer": "c1"}, "day", tz="Europe/Berlin").count  # doctest: +SKIP
        3
        """
        if period not in PERIODS:
            raise InvalidArgumentError("period", period, "one of " + ", ".join(map(repr, PERIODS)))
        require_window(window)
        now, until = self._now_and_until(as_of)
        start = period_start(period, until, time_zone(tz))
        require_retained(window, "period", start, now)
        unit = timedelta(seconds=window.unit)
        interval = Interval(start // window.unit * window.unit, Interval.ending_at(until, unit, window.unit).end)
        return count_intervals(self._table, [(window, values, interval)], consistent=consistent)[0]

    def between(
        self, window: Window, values: Mapping[str, object], start: datetime, end: datetime, *, consistent: bool = False
    ) -> WindowCount:
        """Count events between two moments.

        Parameters
        ----------
        start, end : datetime
            With a time zone, such as ``datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Berlin"))``.
        window, values, consistent
            As in `window`.

        Returns
        -------
        WindowCount
            The count and the interval it covers: all units of precision that the requested one touches.

        Examples
        --------
        >>> counters.between(JOBS, {"customer": "c1"}, monday, tuesday).count  # doctest: +SKIP
        5
        """
        first, last = self._checked(window, start, end)
        interval = Interval.around(first, last, window.unit)
        return count_intervals(self._table, [(window, values, interval)], consistent=consistent)[0]

    def series(
        self,
        window: Window,
        values: Mapping[str, object],
        start: datetime,
        end: datetime,
        *,
        step: timedelta | Period,
        tz: str | tzinfo = "UTC",
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
        tz : str or tzinfo, optional
            Time zone of the calendar. Default ``"UTC"``.
        window, values, consistent
            As in `window`.

        Examples
        --------
        >>> counters.series(JOBS, {"customer": "c1"}, monday, sunday, step="day")  # doctest: +SKIP
        """
        first, last = self._checked(window, start, end)
        intervals = steps(first, last, step, time_zone(tz), window.unit)
        return count_series(self._table, window, values, intervals, consistent=consistent)

    def _now_and_until(self, as_of: datetime | None) -> tuple[float, float]:
        now = self._table.clock()
        return now, now if as_of is None else seconds_of("as_of", as_of)

    def _checked(self, window: Window, start: datetime, end: datetime) -> tuple[float, float]:
        require_window(window)
        first, last = seconds_of("start", start), seconds_of("end", end)
        if first >= last:
            raise InvalidArgumentError("end", end, "a moment after start")
        require_retained(window, "start", first, self._table.clock())
        return first, last
