"""Billing periods of one group of a window: their statements, and how they are closed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo

from dynamodb_counters._declarations import Window
from dynamodb_counters._declarations.kinds import require_window
from dynamodb_counters._reads.bucket_queries import require_retained
from dynamodb_counters._reads.statements import (
    Asked,
    Statement,
    billing_period,
    close_period,
    closed_periods,
    read_statements,
)
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.calendars import Period, time_zone


class BillingReader:
    """One group of a window by billing periods. Part of `WindowReader`."""

    def __init__(self, table: Table, window: Window, values: Mapping[str, object]) -> None:
        require_window(window)
        self._table, self._window, self._values = table, window, values

    def statement(
        self,
        period: Period,
        of: str | None = None,
        tz: str | tzinfo = "UTC",
        *,
        anchor: int = 1,
        consistent: bool = False,
    ) -> Statement:
        """Read the statement of a billing period: its numbers as they stand if it is closed, else as they are now.

        Parameters
        ----------
        period : {"day", "week", "month", "year"}
        of : str, optional
            The period in ISO 8601: ``"2026-10-03"``, ``"2026-W40"``, ``"2026-10"`` or ``"2026"``. Default: the current
            one.
        tz, anchor, consistent
            As in `calendar`.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").statement("month", "2026-10", "Europe/Berlin").total  # doctest: +SKIP
        31
        """
        [found] = read_statements(self._table, [self._asked(period, of, tz, anchor)], consistent=consistent)
        return found

    def close(self, period: Period, of: str, tz: str | tzinfo = "UTC", *, anchor: int = 1) -> Statement:
        """Close a billing period that has ended: from now on its numbers stand; closing it again returns them.

        Events that come later, or are taken back, are in the `adjustment` of the next period that is closed: the
        totals of closed periods add up to what they count. Periods are closed one after the other; the window must keep
        its buckets for good. Costs a write unit, and a read of all closed periods.

        Parameters
        ----------
        period, of, tz, anchor
            As in `statement`; the same `tz` and `anchor` as for the period before.

        Raises
        ------
        InvalidArgumentError
            The period has not ended, does not follow the last closed one, or the window has a retention.
        IncompleteError
            The window waits for a backfill.

        Examples
        --------
        >>> counters.window(JOBS, customer="c1").close("month", "2026-10", "Europe/Berlin").closed_at  # doctest: +SKIP
        datetime.datetime(2026, 11, 3, 9, 0, tzinfo=datetime.timezone.utc)
        """
        return close_period(self._table, self._asked(period, of, tz, anchor), (period, of))

    def closed(self) -> list[Statement]:
        """Read the statements of all closed periods, in order.

        Examples
        --------
        >>> sum(period.total for period in counters.window(JOBS, customer="c1").closed())  # doctest: +SKIP
        93
        """
        return closed_periods(self._table, self._window, self._values)

    def _asked(self, period: str, of: str | None, tz: str | tzinfo, anchor: int) -> Asked:
        now = self._table.clock()
        interval = billing_period(self._window, period, of, time_zone(tz), now, anchor=anchor)
        require_retained(self._window, "of", interval.start, now)
        return self._window, self._values, interval
