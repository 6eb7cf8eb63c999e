"""The lag of the counts behind the streams, and the wait until it is gone.

A shard's records after its checkpoint are folded as the aggregator folds them. A group has counted its part of them
once the watermark of its item, or the checkpoint, has come as far as the last record that adds to it.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import Final

from counters_lambda.counting.batch import intake
from counters_lambda.counting.counted_names import plan_of
from counters_lambda.counting.feeds import Feeds, read_checkpoint, read_groups
from dynamodb_counters._declarations.groups import with_below
from dynamodb_counters._fold.fold import Delta, fold
from dynamodb_counters._fold.layouts import GroupRef
from dynamodb_counters._registry import founded_registry
from dynamodb_counters._table import Table

_AT_A_TIME: Final = 10_000
"""Records that are folded together: of more, each group's last one may come in a later part."""

_PAUSE: Final = 0.5


class Lag:
    """The groups that what the streams hold, when it is made, adds to."""

    def __init__(self, table: Table, feeds: Feeds) -> None:
        self._table, registry, origins = table, founded_registry(table), feeds.origins(table)
        # A name that a backfill fills counts nothing before its cut.
        plan = plan_of(registry, frozenset(name for name, entry in registry.names.items() if not entry.is_complete))
        self.levels = max((len([*with_below(each)]) for each in registry.counting), default=1)

        def uncounted(shard: str) -> list[tuple[str, Delta]]:
            records = iter(feeds.records(shard, read_checkpoint(table, shard).applied_through))
            last: dict[GroupRef, Delta] = {}
            while part := list(islice(records, _AT_A_TIME)):
                last |= {delta.ref: delta for delta in fold(plan, intake(part, origins)).deltas}
            return [(shard, delta) for delta in last.values()]

        self._left = [*chain.from_iterable(table.each(uncounted, [shard.id for shard in feeds.shards()]))]

    def settle(self) -> int:
        """Read the groups again, and return how many have not counted all of it yet."""
        wanted = [(delta.layout, delta.group) for _, delta in self._left]
        read = read_groups(self._table, wanted, {shard for shard, _ in self._left})
        groups = zip(self._left, read, strict=True)
        self._left = [(shard, delta) for (shard, delta), group in groups if group.applied[shard] < delta.last]
        return len(self._left)


def wait_until_counted(table: Table, feeds: Feeds, seconds: float) -> None:
    """Return once all is counted that the streams hold now; `TimeoutError` if that takes longer."""
    until = table.clock() + seconds
    lag = Lag(table, feeds)
    # What counts groups is brought by the records of these, which come once they have counted.
    for level in range(lag.levels, 0, -1):
        while groups := lag.settle():
            if table.clock() >= until:
                raise TimeoutError(f"{groups} groups have not counted all that came before, after {seconds:g} s")
            table.sleep(_PAUSE)
        lag = Lag(table, feeds) if level > 1 else lag
