"""The on-failure bucket of a schedule, and which of its batches are being redriven."""

from __future__ import annotations

import random
from collections.abc import Sequence

from dynamodb_counters._fold.records import sequence_number
from simulation.delivery.event_source_mapping import Delivery, EventSourceMapping
from simulation.delivery.stream_source import shard_id
from simulation.memory.memory_stream import Record


class Bucket:
    """Batches that mappings gave up on. A shard's batches are redriven in their order, one at a time."""

    def __init__(self, mappings: Sequence[EventSourceMapping]) -> None:
        self._mappings = mappings
        self._deleted: set[tuple[str, ...]] = set()
        self._busy: dict[str, Delivery] = {}

    def take(self, rng: random.Random) -> Delivery | None:
        """The next batch of some shard, in hand until it is left."""
        waiting: dict[str, list[list[Record]]] = {}
        for mapping in self._mappings:
            for shard, records in mapping.on_failure:
                if _identity(records) not in self._deleted and shard not in self._busy:
                    waiting.setdefault(shard, []).append(records)
        if not waiting:
            return None
        shard = rng.choice(sorted(waiting))
        records = min(waiting[shard], key=lambda batch: (sequence_number(batch[0]), sequence_number(batch[-1])))
        taken = Delivery(shard, records, {"shardId": shard_id(shard), "Records": records}, given_up=True)
        self._busy[shard] = taken
        return taken

    def delete(self, delivery: Delivery) -> None:
        self._deleted.add(_identity(delivery.records))

    def leave(self, delivery: Delivery) -> None:
        if self._busy.get(delivery.shard) is delivery:
            del self._busy[delivery.shard]


def _identity(records: Sequence[Record]) -> tuple[str, ...]:
    return tuple(record["eventID"] for record in records)
