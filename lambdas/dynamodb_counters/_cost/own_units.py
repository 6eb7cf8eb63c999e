"""Units of this design, per stage: accepting an event, updating what it counts in, and the shards' bookkeeping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dynamodb_counters._assumptions import FRESH
from dynamodb_counters._cost.batches import SHARD_LIFETIME, Batches
from dynamodb_counters._cost.chunk_sizes import CHUNK_BYTES, ChunkSizes
from dynamodb_counters._cost.counted_items import GUARD_SECONDS, Counted, updates_of
from dynamodb_counters._items.item_sizes import READ_UNIT_BYTES, write_units
from dynamodb_counters._timeline.times import HOUR

ITEMS_PER_CHECKPOINT: Final = 100
"""Items touched until a shard's checkpoint moves; it also moves at the end of a tumbling window."""

_SHARD_WRITES: Final = 3.0
"""A new shard's checkpoint and witness, and the witness again when it first moves."""

READS_PER_LOOK: Final = 2

_SHARD_READS: Final = 1.0
"""A new shard looks for its witness."""

_FULL: Final = 0.97
"""Share of the bytes at which a flush is cut that chunks come to."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Units of one stage, per event."""

    writes: float = 0.0
    reads: float = 0.0

    def __mul__(self, factor: float) -> Stage:
        return Stage(self.writes * factor, self.reads * factor)


@dataclass(frozen=True, slots=True)
class Packing:
    """How events are packed: so many per flush and log, so often, of such sizes, by so many writers of a log."""

    events_per_flush: float
    seconds: float
    sizes: ChunkSizes
    chunk_bytes: int = 4096
    writers: int = 1
    bucket_seconds: float = 600.0

    @property
    def chunks(self) -> float:
        """Per flush."""
        return max(1.0, self.events_per_flush / self.sizes.events_within(self.chunk_bytes * _FULL))

    @property
    def flush_bytes(self) -> float:
        return self.chunks * (CHUNK_BYTES + self.sizes.content(self.events_per_flush / self.chunks))


def accept_plain(event_bytes: float, duplicates: float = 0.0, *, compares: bool = False) -> Stage:
    """An item per event; a duplicate is refused at the same price, and read by a queue's consumer, which `compares`."""
    read = math.ceil(event_bytes / READ_UNIT_BYTES) * duplicates if compares else 0.0
    return Stage(write_units(event_bytes) * (1 + duplicates), read)


def accept_packed(packing: Packing) -> Stage:
    """A flush, cut into chunks; with more writers than one, each looks first at what the others have written."""
    full, rest = divmod(packing.chunks, 1.0) if packing.chunks > 1 else (0.0, 1.0)
    chunk = write_units(packing.chunk_bytes * _FULL)
    last = packing.sizes.units(rest * packing.events_per_flush / packing.chunks) if rest else 0.0
    writes = full * chunk + last
    # Each process asks for the layout once per minute, and looks into each bucket that it meets for the first time.
    reads = min(1.0, packing.writers * packing.seconds / FRESH)
    flushes = max(1.0, packing.bucket_seconds / packing.seconds) if packing.seconds else math.inf
    if packing.writers > 1:
        reads += 0.5 * math.ceil(packing.flush_bytes / READ_UNIT_BYTES)
        # The first one learns of the others from a put that is refused, when it comes to the bucket again.
        writes += (chunk if full else last) / flushes if flushes > packing.writers else 0.0
    else:
        reads += 0.5 / flushes
    return Stage(writes, reads) * (1 / packing.events_per_flush)


def count_units(counted: Sequence[Counted], batches: Batches, shards: int) -> dict[str, Stage]:
    """Stages of counting, per event: updates, pruning, index, checkpoints."""
    each = [updates_of(one, batches, shards) for one in counted]
    updates = sum(one.number for one in each)
    # Batches alone: what echoes look at is added elsewhere.
    reads = READS_PER_LOOK * min(1.0, batches.seconds / FRESH) + _SHARD_READS / batches.per_shard
    looks = batches.seconds / HOUR * 0.5 * shards * (1 + GUARD_SECONDS / SHARD_LIFETIME)
    found = {
        "update": Stage(sum(one.writes for one in each)),
        "prune": Stage(sum(one.pruning for one in each), looks if any(one.looks for one in each) else 0.0),
        "index": Stage(sum(one.index for one in each)),
        "checkpoint": Stage(checkpoint_writes(updates, batches), reads),
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
    # The shard's end cuts a window.
    return moves + (_SHARD_WRITES + (batches.per_window > 1)) / batches.per_shard


def checkpoint_reads(looks: float, shards: int) -> float:
    """Read units per second of so many looks: a consistent read of the checkpoint, and one of the deployments."""
    return READS_PER_LOOK * looks + shards * _SHARD_READS / SHARD_LIFETIME
