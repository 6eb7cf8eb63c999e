"""Groups as their items are read, with their positions: how far each shard of the stream is applied for certain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dynamodb_counters._assumptions import READ_TOGETHER
from dynamodb_counters._commit.checkpoint_items import BOOK, Checkpoint, checkpoint_key
from dynamodb_counters._control.run_items import ONLY_SHARD
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.watermarks import Watermark, sequence_of, shard_digest
from dynamodb_counters._reads.page_reads import Wanted, read_items
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError

_AGAIN: Final = 5


@dataclass(slots=True)
class Held:
    """A group as its items were read, and what of the log they have applied for certain."""

    items: list[Image]
    applied: dict[str, str]


def books(table: Table, shard: str) -> Iterator[tuple[str, Checkpoint]]:
    """The books of a shard with their checkpoints, the first one first."""
    book = shard
    while book:
        known = Checkpoint.of(table.read_item(checkpoint_key(shard_digest(book))))
        yield book, known
        book = known.successor and f"{shard}{BOOK}{known.successor}"


def hold(table: Table, wanted: Sequence[Wanted], shards: Iterable[str], now: Callable[[], float]) -> list[Held]:
    """Read checkpoints, then items: what a checkpoint covers, the items have applied."""
    every = (*shards, ONLY_SHARD)
    for _ in range(_AGAIN):
        begun = now()
        known = {shard: list(books(table, shard)) for shard in every}
        found = read_items(table, wanted, consistent=True)
        if now() < begun + READ_TOGETHER:
            break
    else:
        raise BackfillError("reading takes too long: the checkpoints that were read before have settled since")
    return [Held(items, {shard: applied_in(items, shard, those) for shard, those in known.items()}) for items in found]


def applied_in(items: list[Image], shard: str, those: Sequence[tuple[str, Checkpoint]]) -> str:
    """The last record of a shard that a group has applied, by its books' checkpoints and the items' watermarks."""
    names = [Watermark(shard, book).name for book, _ in those]
    found = [sequence_of(item[name]) for item in items for name in names if name in item]
    return max([*(known.applied_through for _, known in those), *found])
