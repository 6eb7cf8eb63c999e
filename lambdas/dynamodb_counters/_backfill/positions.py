"""Groups as their items are read, with their positions: how far each shard of the stream is applied for certain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias, TypeVar

from dynamodb_counters._assumptions import READ_TOGETHER
from dynamodb_counters._commit.checkpoint_items import BOOK, Checkpoint, checkpoint_key
from dynamodb_counters._control.run_items import ONLY_SHARD
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.watermarks import Watermark, sequence_of, shard_digest
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError

Books: TypeAlias = list[tuple[str, Checkpoint]]

T = TypeVar("T")

_AGAIN: Final = 5


class ReadGroup(NamedTuple):
    """A group as its items were read, and what of the log they have applied for certain."""

    items: list[Image]
    applied: dict[str, str]


def books(table: Table, shard: str) -> Iterator[tuple[str, Checkpoint]]:
    """The books of a shard with their checkpoints, the first one first."""
    # Records before the first one that was tried may have been given up on, and counted later.
    if early := table.read_item(checkpoint_key(shard_digest(shard + BOOK))):
        yield shard + BOOK, Checkpoint.of(early)
    book = shard
    while book:
        known = Checkpoint.of(table.read_item(checkpoint_key(shard_digest(book))))
        yield book, known
        book = known.successor and f"{shard}{BOOK}{known.successor}"


def read_after_books(
    table: Table, shards: Iterable[str], read: Callable[[], T], now: Callable[[], float]
) -> tuple[dict[str, Books], T]:
    """Read checkpoints, then items: what a checkpoint covers, the items have applied."""
    every = (*shards, ONLY_SHARD)
    for _ in range(_AGAIN):
        begun = now()
        known, found = {shard: list(books(table, shard)) for shard in every}, read()
        if now() < begun + READ_TOGETHER:
            return known, found
    raise BackfillError("reading takes too long: the checkpoints that were read before have settled since")


def applied_by(items: list[Image], known: Mapping[str, Books]) -> dict[str, str]:
    """By shard, the last record that a group has applied, by its books' checkpoints and the items' watermarks."""
    applied = {}
    for shard, those in known.items():
        names = [Watermark(shard, book).name for book, _ in those]
        found = [sequence_of(item[name]) for item in items for name in names if name in item]
        applied[shard] = max([*(checkpoint.applied_through for _, checkpoint in those), *found])
    return applied
