"""Windows as they are read: one group of a window, and many groups at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Unpack

from dynamodb_counters._declarations import TimeWeighted, Window
from dynamodb_counters._declarations.groups import Given, given
from dynamodb_counters._declarations.kinds import require_declaration
from dynamodb_counters._reads.bucket_queries import count_intervals, count_series, integrate, require_retained
from dynamodb_counters._reads.span_reader import Length, SpanReader, now_and_until, trailing
from dynamodb_counters._reads.table_reads import TableReads
from dynamodb_counters._reads.window_counts import Integral, WindowCount
from dynamodb_counters._timeline.intervals import Interval
from dynamodb_counters._timeline.times import FIRST_SECOND
from dynamodb_counters.errors import InvalidArgumentError


class WindowReader(SpanReader[Window, WindowCount]):
    """One group of a window, to be counted over spans of time. Made by `Counters.window`.

    Each call reads the table; all its Queries run at once. Every result states the interval it covers, which differs
    from the requested one by less than a unit of the window's precision at either end.

    Examples
    --------
    >>> jobs = counters.window(JOBS, customer="c1")  # doctest: +SKIP
    >>> jobs.last(hours=24).count, jobs.today("Europe/Berlin").count  # doctest: +SKIP
    (7, 3)
    """

    def integral(self, start: datetime, end: datetime, *, consistent: bool = False) -> Integral:
        """Add up a level over time between two moments, of a window whose measure is `TimeWeighted`.

        Reads the buckets of all that was before, too: a month each.

        Parameters
        ----------
        start, end, consistent
            As in `between`.

        Examples
        --------
        >>> counters.window(STORAGE, customer="c1").integral(monday, tuesday).per(timedelta(hours=1))  # doctest: +SKIP
        Decimal('1220.5')
        """
        self._require_level()
        return integrate(self._table, self._declared, self._values, self._around(start, end), consistent=consistent)

    def level(self, at: datetime | None = None, *, consistent: bool = False) -> WindowCount:
        """Read the level that holds at a moment, of a window whose measure is `TimeWeighted`.

        Parameters
        ----------
        at : datetime, optional
            The changes of the whole unit of precision that holds it count, too. Default: now.
        consistent
            As in `last`.

        Examples
        --------
        >>> counters.window(SEATS, customer="c1").level(march_3).count  # doctest: +SKIP
        17
        """
        self._require_level()
        _, until = now_and_until(self._table, at)
        unit = self._declared._unit
        end = Interval.ending_at(until, timedelta(seconds=unit), unit).end
        return self._counted([Interval(FIRST_SECOND, end)], consistent=consistent)[0]

    def _require_level(self) -> None:
        if not isinstance(self._declared.measure, TimeWeighted):
            raise InvalidArgumentError("window", self._declared.name, "one whose measure is TimeWeighted")

    def _counted(self, intervals: Sequence[Interval], *, consistent: bool) -> list[WindowCount]:
        return count_series(self._table, self._declared, self._values, intervals, consistent=consistent)


class WindowReads(TableReads):
    def window(self, window: Window, values: Given = None, /, **fields: object) -> WindowReader:
        """Return a reader of one group of a window; no request.

        Parameters
        ----------
        window : Window
        values, **fields
            The group, as in `get`.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").last(hours=24).count  # doctest: +SKIP
        7
        """
        require_declaration(window, Window)
        return WindowReader(self._table, window, given(values, fields))

    def window_many(
        self,
        wanted: Iterable[tuple[Window, Mapping[str, object]]],
        length: timedelta | None = None,
        /,
        *,
        as_of: datetime | None = None,
        consistent: bool = False,
        **parts: Unpack[Length],
    ) -> list[WindowCount]:
        """Count events in a trailing span of time for several groups or windows at once, in their order.

        Parameters
        ----------
        wanted : iterable of (Window, mapping)
            Windows with the values of their groups.
        length, as_of, consistent, weeks, days, hours, minutes, seconds
            As in `WindowReader.last`.

        Examples
        --------
        >>> counters.window_many([(JOBS, c1), (JOBS, c2)], hours=24)  # doctest: +SKIP
        """
        now, until = now_and_until(self._table, as_of)
        asked = []
        for window, values in wanted:
            require_declaration(window, Window)
            interval = trailing(window, until, length, parts)
            require_retained(window, "last", interval.start, now)
            asked.append((window, values, interval))
        return count_intervals(self._table, asked, consistent=consistent)
