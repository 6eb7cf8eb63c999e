"""Counts by time."""

from __future__ import annotations

from constructs import Construct

from cdk_dynamodb_counters._arguments import require_instance
from cdk_dynamodb_counters._synth import check_at_synth
from cdk_dynamodb_counters._tables import TableDeclarations, require_same_place, require_stream
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
from dynamodb_counters._declarations import Window


class WindowedCounter(Construct):
    """Counts a table's events by time: "how many in the last 24 hours".

    The table's `StreamAggregator` keeps the counts. Either may be created first, in any stack of the app.

    Parameters
    ----------
    scope, construct_id
        Parent construct, and id within it.
    table : DedupCounterTable
        The table that stores the events and the window's buckets.
    window : Window
        Events to count, by which time, and how long to keep the counts.

    Examples
    --------
    >>> WindowedCounter(stack, "Rolling", table=counters, window=JOBS_24H)  # doctest: +SKIP
    """

    window: Window
    """The window, to pass to the runtime's reads."""

    def __init__(self, scope: Construct, construct_id: str, *, table: DedupCounterTable, window: Window) -> None:
        require_instance("table", table, DedupCounterTable)
        require_stream("table", table.table)
        require_instance("window", window, Window)
        super().__init__(scope, construct_id)
        require_same_place("table", self, table.table)
        self.window = window
        declared = TableDeclarations.of(table.table)
        declared.add(declarations=[window])
        problem = f"window {window.name!r} is never counted"
        check_at_synth(self, lambda: declared.require_aggregator(table.node.path, problem))
