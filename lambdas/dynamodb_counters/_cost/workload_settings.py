"""Settings that a bill depends on, and what follows from them: partitions, batches, flushes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from dynamodb_counters._cost import own_units
from dynamodb_counters._cost.batches import Batches
from dynamodb_counters._cost.chunk_sizes import ChunkSizes
from dynamodb_counters._cost.counted_items import Counted
from dynamodb_counters._cost.functions import INVOCATION, ROUND_TRIP
from dynamodb_counters._cost.own_units import Packing, Stage

Door: TypeAlias = Literal["sdk", "queue", "http", "validated"]
"""Who accepts: your own code; a queue's consumer; that behind an API; that with a function that checks before."""

FEWEST_PARTITIONS: Final = 4
"""Partitions of a new table on demand."""

TABLE_UNITS: Final = 40_000.0
"""Write units per second of a table, before AWS raises the quota.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"""

_PARTITION_UNITS: Final = 700.0
"""Write units per second that steady traffic uses of a partition's 1,000."""

_ROUNDS: Final = 25


@dataclass(frozen=True, slots=True)
class Workload:
    """Events per second, what they are counted in, and how they come.

    `partitions` follows from the units if it is not given. `packed` are events per flush of a log of which an event has
    `parts`, `per_request` those of a request or message, `gather` the seconds that the stream's batches gather for,
    `concurrency` the account's executions at a time, `table_units` its quota of a table's write units per second.
    """

    rate: float
    counted: tuple[Counted, ...]
    event_bytes: float = 200.0
    retention_days: float = 7.0
    duplicates: float = 0.0
    partitions: int | None = None
    gather: float = 1.0
    batch: int = 1000
    packed: float | None = None
    parts: int = 1
    sizes: ChunkSizes | None = None
    door: Door = "sdk"
    per_request: int = 1
    concurrency: int = 1000
    table_units: float = TABLE_UNITS
    monitoring: bool = False
    dashboard: bool = False
    tracing: bool = False

    def packing(self) -> Packing | None:
        if self.packed is None:
            return None
        sizes = self.sizes or ChunkSizes.assumed(self.event_bytes)
        # A queue's consumer cannot be limited to fewer than two.
        writers = 1 if self.door == "sdk" else 2
        return Packing(self.packed, self.packed * self.parts / self.rate, sizes, writers=writers)

    def shards(self) -> int:
        if self.partitions is not None:
            return self.partitions
        shards = FEWEST_PARTITIONS
        while True:
            writes = sum(stage.writes for stage in self.stages(shards).values())
            needed = math.ceil(self.rate * writes / _PARTITION_UNITS)
            if needed <= shards:
                return shards
            shards = needed

    def feeding(self, shards: int) -> int:
        """Shards that have events: chunks of a part have one partition key."""
        return shards if self.packed is None else min(self.parts, shards)

    def batches(self, shards: int) -> Batches:
        """The batches of a shard that has events; the table's own changes take part of their room."""
        feeding = self.feeding(shards)
        per_record = 1.0 if self.packed is None else self.packed
        room = self.batch * per_record
        # The next batch gathers while this one is counted.
        gather = max(self.gather, INVOCATION + ROUND_TRIP)

        def of(most: float) -> tuple[Batches, bool]:
            found = Batches.gathered(self.rate / feeding, gather, most, per_record)
            own = own_units.updates_per_batch(self.counted, found, feeding) * feeding / shards * per_record
            return found, found.events + own <= room

        found, fits = of(room)
        low, high = per_record, found.events
        for _ in range(0 if fits else _ROUNDS):
            middle = (low + high) / 2
            found, fits = of(middle)
            low, high = (middle, high) if fits else (low, middle)
        return found

    def stages(self, shards: int) -> dict[str, Stage]:
        packing = self.packing()
        plain = own_units.accept_plain(self.event_bytes, self.duplicates, compares=self.door != "sdk")
        accepted = plain if packing is None else own_units.accept_packed(packing)
        return {"accept": accepted, **own_units.count_units(self.counted, self.batches(shards), self.feeding(shards))}

    def unpacked(self) -> Workload:
        return replace(self, packed=None)
