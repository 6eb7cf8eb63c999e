"""Units of this design, per stage: accepting an event, updating what it counts in, and the shards' bookkeeping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dynamodb_counters._cost.batches import Batches
from dynamodb_counters._cost.counted_items import GUARD_SECONDS, Counted, updates_of
from dynamodb_counters._cost.batches import SHARD_LIFETIME
from dynamodb_counters._items.item_sizes import WRITE_UNIT_BYTES, write_units

ITEMS_PER_CHECKPOINT: Final = 100
"""Items touched until a shard's checkpoint moves; it also moves at the end of a tumbling window."""

_SHARD_WRITES: Final = 4.0
"""A new shard's checkpoint and witness, the witness again when it first moves, and a window cut by the shard's end."""

_FRESH_SECONDS: Final = 60.0
"""A process reads checkpoint and deployments once per minute."""

_HOUR: Final = 3600.0
_CHUNK_BYTES: Final = 100
"""A chunk without its events: keys, type, TTL."""

_READ_UNIT_BYTES: Final = 4096
_FULL: Final = 0.95
_SPREAD: Final = 0.05
"""Chunks of as many events differ in size by so much."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Units of one stage, per event."""

    writes: float = 0.0
    reads: float = 0.0

    def __add__(self, other: Stage) -> Stage:
        return Stage(self.writes + other.writes, self.reads + other.reads)

    def __mul__(self, factor: float) -> Stage:
        return Stage(self.writes * factor, self.reads * factor)


@dataclass(frozen=True, slots=True)
class Packing:
    """How events are packed: so many per flush, of so many bytes each once compressed, by so many writers of a log."""

    events_per_flush: float
    event_bytes: float
    chunk_bytes: int = 4096
    writers: int = 1


def accept_plain(event_bytes: float, duplicates: float = 0.0) -> Stage:
    """An item per event; a duplicate is refused at the same price."""
    return Stage(write_units(event_bytes) * (1 + duplicates))


def accept_packed(packing: Packing) -> Stage:
    """A flush, cut into chunks; with more writers than one, each looks first at what the others have written."""
    content = packing.events_per_flush * packing.event_bytes
    full, rest = divmod(content, packing.chunk_bytes * _FULL - _CHUNK_BYTES)
    writes = full * write_units(packing.chunk_bytes * _FULL)
    writes += expected_units(rest + _CHUNK_BYTES) if rest or not full else 0.0
    others = content + (full + 1) * _CHUNK_BYTES if packing.writers > 1 else 0.0
    return Stage(writes, math.ceil(others / _READ_UNIT_BYTES)) * (1 / packing.events_per_flush)


def expected_units(size: float) -> float:
    """Write units of items of about that size.

    >>> expected_units(500), expected_units(1024)
    (1.0, 1.5)
    """
    low, high = size * (1 - _SPREAD), size * (1 + _SPREAD)
    boundaries = range(math.ceil(low / WRITE_UNIT_BYTES), math.floor(high / WRITE_UNIT_BYTES) + 1)
    return write_units(low) + sum((high - each * WRITE_UNIT_BYTES) / (high - low) for each in boundaries if each)


def count_units(counted: Sequence[Counted], batches: Batches, shards: int) -> dict[str, Stage]:
    """Stages of counting, per event: updates, pruning, index, checkpoints."""
    each = [updates_of(one, batches, shards) for one in counted]
    updates = sum(one.number for one in each)
    looks = batches.seconds / _HOUR * 0.5 * shards * (1 + GUARD_SECONDS / SHARD_LIFETIME)
    found = {
        "update": Stage(sum(one.writes for one in each)),
        "prune": Stage(sum(one.pruning for one in each), looks if any(one.looks for one in each) else 0.0),
        "index": Stage(sum(one.index for one in each)),
        "checkpoint": Stage(checkpoint_writes(updates, batches), _checkpoint_reads(batches)),
    }
    return {name: stage * (1 / batches.events) for name, stage in found.items()}


def updates_per_batch(counted: Sequence[Counted], batches: Batches, shards: int) -> float:
    return sum(updates_of(one, batches, shards).number for one in counted)


def checkpoint_writes(updates: float, batches: Batches) -> float:
    """Write units per batch for moving the shard's checkpoint, and for making it."""
    every = math.ceil(ITEMS_PER_CHECKPOINT / max(updates, 1e-9))
    if math.isinf(batches.per_window):
        moves = 1 / every
    else:
        moves = min(1.0, math.ceil(batches.per_window / every) / batches.per_window)
    return moves + _SHARD_WRITES / batches.per_shard


def _checkpoint_reads(batches: Batches) -> float:
    """Read units per batch: a consistent read of the checkpoint, and one of the deployments."""
    return 2 * min(1.0, batches.seconds / _FRESH_SECONDS)
