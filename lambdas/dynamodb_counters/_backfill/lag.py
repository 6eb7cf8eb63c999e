"""What the streams hold that is not counted yet, and the wait until it is.

A shard's records after its checkpoint are folded as the aggregator folds them. A group has counted its part of them
once the watermark of its item, or the checkpoint, has come as far as the last record that adds to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from dynamodb_counters._backfill.feeds import Feeds, applied_by, read_checkpoint
from dynamodb_counters._commit.batch import intake
from dynamodb_counters._control.counted_names import plan_of
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._declarations.groups import with_below
from dynamodb_counters._fold.fold import Delta, fold
from dynamodb_counters._fold.records import Record
from dynamodb_counters._reads.table_reads import read_items
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError

_AT_A_TIME: Final = 10_000
"""Records that are folded together: of more, each group's last one may come in a later part."""

_PAUSE: Final = 0.5


class Lag:
    """The groups that what the streams hold, when it is made, adds to."""

    def __init__(self, table: Table, feeds: Feeds) -> None:
        self._table = table
        self._registry = read_registry(table)
        if not self._registry.is_founded:
            raise BackfillError(f"nothing counts the table {table.name!r} yet: deploy a StreamAggregator")
        self._plan, self._origins = plan_of(self._registry), feeds.origins(table)
        shards = [shard.id for shard in feeds.shards()]
        deltas = table.each(lambda shard: self._uncounted(feeds, shard), shards)
        self._left = [(shard, delta) for shard, some in zip(shards, deltas, strict=True) for delta in some]

    def _uncounted(self, feeds: Feeds, shard: str) -> list[Delta]:
        records = iter(feeds.records(shard, read_checkpoint(self._table, shard).applied_through))
        return [*{delta.ref: delta for part in _parts(records) for delta in self._fold(part)}.values()]

    def _fold(self, records: list[Record]) -> list[Delta]:
        # A name that a backfill fills counts nothing before its cut.
        entries = self._registry.entries
        deltas = fold(self._plan, intake(records, self._origins)).deltas
        return [delta for delta in deltas if entries[delta.layout.name].is_complete]

    @property
    def levels(self) -> int:
        """How many aggregates count over each other at most."""
        return max((len([*with_below(each)]) for each in self._registry.counting), default=1)

    def settle(self) -> int:
        """Read the groups again, and return how many have not counted all of it yet."""
        table, left = self._table, self._left
        if not left:
            return 0
        # What a checkpoint covers, items that are read after it have applied.
        checkpoints = {shard: read_checkpoint(table, shard) for shard in {shard for shard, _ in left}}
        read = read_items(table, [(delta.layout, delta.group) for _, delta in left], consistent=True)
        self._left = [
            (shard, delta)
            for (shard, delta), items in zip(left, read, strict=True)
            if applied_by(items, checkpoints)[shard] < delta.last
        ]
        return len(self._left)


def _parts(records: Iterator[Record]) -> Iterator[list[Record]]:
    while part := list(islice(records, _AT_A_TIME)):
        yield part


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
