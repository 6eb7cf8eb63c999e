"""Windows of `Counters`: a reader of one group, and many groups at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Unpack

from dynamodb_counters._declarations import Window
from dynamodb_counters._declarations.groups import given
from dynamodb_counters._declarations.kinds import require_window
from dynamodb_counters._reads.bucket_queries import count_intervals, require_retained
from dynamodb_counters._reads.span_reader import Length, length_of, now_and_until
from dynamodb_counters._reads.window_counts import WindowCount
from dynamodb_counters._reads.window_reader import WindowReader
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.intervals import Interval


class WindowReads:
    """Reads windows of one table. Part of `Counters`."""

    _table: Table

    def window(self, window: Window, values: Mapping[str, object] | None = None, /, **fields: object) -> WindowReader:
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
        span, asked = length_of(length, parts), []
        for window, values in wanted:
            require_window(window)
            interval = Interval.ending_at(until, span, window._unit)
            require_retained(window, "last", interval.start, now)
            asked.append((window, values, interval))
        return count_intervals(self._table, asked, consistent=consistent)
