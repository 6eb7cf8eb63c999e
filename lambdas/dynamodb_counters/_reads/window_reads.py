"""What `Counters` answers about windows: the last so long, periods of a calendar, plots, comparisons, limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, tzinfo

from dynamodb_counters._declarations import Window
from dynamodb_counters._items.decimals import Number, require_storable
from dynamodb_counters._reads import bucket_queries as windows
from dynamodb_counters._reads.window_counts import Comparison, WindowCount
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.calendars import PERIODS, Period, period_start, steps, time_zone
from dynamodb_counters._timeline.intervals import Interval
from dynamodb_counters._timeline.times import seconds_of
from dynamodb_counters.errors import InvalidArgumentError


class WindowReads:
    """Reads windows of one table. Part of `Counters`.

    Every answer states the interval it covers, which differs from the asked one by less than a unit of the window's
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
        """Count the last so long.

        Parameters
        ----------
        window : Window
            Which window.
        values : mapping of str to str or number
            Its group.
        last : timedelta
            How long; whole units of the window's precision.
        as_of : datetime, optional
            Until when, with a time zone. Default: now.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        WindowCount
            The count and the interval it covers.
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
        """Count the last so long for several groups or windows, by Queries that run at once.

        Parameters
        ----------
        wanted : iterable of (Window, mapping)
            Window and group, any number.
        last : timedelta
            How long; whole units of every window's precision.
        as_of : datetime, optional
            Until when, with a time zone. Default: now.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        list of WindowCount
            In the order asked.
        """
        now, until = self._now_and_until(as_of)
        asked = []
        for window, values in wanted:
            interval = Interval.ending_at(until, last, window.unit)
            windows.require_retained(window, "last", interval.start, now)
            asked.append((window, values, interval))
        return windows.count(self._table, asked, consistent=consistent)

    def compare(
        self,
        window: Window,
        values: Mapping[str, object],
        *,
        last: timedelta,
        as_of: datetime | None = None,
        consistent: bool = False,
    ) -> Comparison:
        """Compare the last so long with as long before it.

        Parameters
        ----------
        window : Window
            Which window; it has to retain twice as long.
        values : mapping of str to str or number
            Its group.
        last : timedelta
            How long; whole units of the window's precision.
        as_of : datetime, optional
            Until when, with a time zone. Default: now.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        Comparison
            Both counts and the change.
        """
        now, until = self._now_and_until(as_of)
        current = Interval.ending_at(until, last, window.unit)
        previous = Interval(2 * current.start - current.end, current.start)
        windows.require_retained(window, "last", previous.start, now)
        asked = [(window, values, previous), (window, values, current)]
        before, after = windows.count(self._table, asked, consistent=consistent)
        return Comparison(after, before)

    def over_limit(
        self,
        window: Window,
        values: Mapping[str, object],
        limit: Number,
        *,
        last: timedelta,
        as_of: datetime | None = None,
        consistent: bool = False,
    ) -> bool:
        """Tell whether a group has more than it may in the last so long.

        The stream counts an event a moment after it was accepted, and a group may get ahead of its limit by what comes
        in that moment. For a limit that must hold, count with `record_once` and read with ``consistent=True``.

        Parameters
        ----------
        window : Window
            Which window.
        values : mapping of str to str or number
            Its group.
        limit : int or Decimal
            Most that is allowed.
        last : timedelta
            How long; whole units of the window's precision.
        as_of : datetime, optional
            Until when, with a time zone. Default: now.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        bool
            True beyond the limit; the limit itself is allowed.
        """
        require_storable("limit", limit)
        return self.window(window, values, last=last, as_of=as_of, consistent=consistent).count > limit

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
        """Count this local hour, today, this week, this month or this year, so far.

        Parameters
        ----------
        window : Window
            Which window.
        values : mapping of str to str or number
            Its group.
        period : {"hour", "day", "week", "month", "year"}
            Weeks begin on Monday.
        tz : str or tzinfo, optional
            Whose calendar: an IANA name such as ``"Europe/Berlin"``. Default ``"UTC"``.
        as_of : datetime, optional
            Which period, and how far of it, with a time zone. Default: now.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        WindowCount
            The count and the interval it covers: to the unit of precision that holds `as_of`, which is included whole.
        """
        if period not in PERIODS:
            raise InvalidArgumentError("period", period, "one of " + ", ".join(map(repr, PERIODS)))
        now, until = self._now_and_until(as_of)
        start = period_start(period, until, time_zone(tz))
        windows.require_retained(window, "period", start, now)
        unit = timedelta(seconds=window.unit)
        interval = Interval(start // window.unit * window.unit, Interval.ending_at(until, unit, window.unit).end)
        return self._count(window, values, interval, consistent=consistent)

    def between(
        self,
        window: Window,
        values: Mapping[str, object],
        start: datetime,
        end: datetime,
        *,
        consistent: bool = False,
    ) -> WindowCount:
        """Count from one moment to another.

        Parameters
        ----------
        window : Window
            Which window.
        values : mapping of str to str or number
            Its group.
        start, end : datetime
            With a time zone, such as ``datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Berlin"))``.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        WindowCount
            The count and the interval it covers: all units of precision that the asked one touches.
        """
        first, last = self._checked(window, start, end)
        interval = Interval.around(first, last, window.unit)
        return self._count(window, values, interval, consistent=consistent)

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
        """Count step by step, for a plot.

        Parameters
        ----------
        window : Window
            Which window.
        values : mapping of str to str or number
            Its group.
        start, end : datetime
            With a time zone.
        step : timedelta or {"hour", "day", "week", "month", "year"}
            So long from `start` on, in whole units of the window's precision; or periods of a local calendar, of which
            the first and last are cut off at `start` and `end`.
        tz : str or tzinfo, optional
            Whose calendar. Default ``"UTC"``.
        consistent : bool, optional
            Whether to see all writes that are done, at twice the read units. Default False.

        Returns
        -------
        list of WindowCount
            Without gap or overlap, in order; 0 where nothing was counted.
        """
        first, last = self._checked(window, start, end)
        intervals = steps(first, last, step, time_zone(tz), window.unit)
        return windows.series(self._table, window, values, intervals, consistent=consistent)

    def _count(
        self, window: Window, values: Mapping[str, object], interval: Interval, *, consistent: bool
    ) -> WindowCount:
        return windows.count(self._table, [(window, values, interval)], consistent=consistent)[0]

    def _now_and_until(self, as_of: datetime | None) -> tuple[float, float]:
        now = self._table.clock()
        return now, now if as_of is None else seconds_of("as_of", as_of)

    def _checked(self, window: Window, start: datetime, end: datetime) -> tuple[float, float]:
        first, last = seconds_of("start", start), seconds_of("end", end)
        if first >= last:
            raise InvalidArgumentError("end", end, "a moment after start")
        windows.require_retained(window, "start", first, self._table.clock())
        return first, last
