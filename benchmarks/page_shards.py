"""Price of pages and of an item per group by the table's partitions; and shards with a batch now and then."""

from __future__ import annotations

import random
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from benchmarks.databases import READ_PRICE, since, units
from benchmarks.partitioned_table import PartitionedTable
from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._declarations import Packed

_HOUR: Final = 3_600
_GROUPS: Final = 1_000
_PER_BATCH: Final = 32
"""Events of each shard and hour."""

_PLAIN: Final = Event("view", key=("page", "time", "client"))
_PACKED: Final = Event("view", key=("page", "time", "client"), packed=Packed("time"))

_RARELY: Final = 600
_FEW_GROUPS: Final = 40
_FEW: Final = 10
"""Events of each shard and ten minutes, in groups of one page."""


def measure(partitions: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """Units per event of counting, without accepting: plain events come from all shards, packed ones from few."""
    return {
        str(number): {
            f"{name} events, {kept}": _spread(number, event, pages=kept == "pages")
            for name, event in (("plain", _PLAIN), ("packed", _PACKED))
            for kept in ("items", "pages")
        }
        for number in partitions
    }


def _spread(partitions: int, event: Event, *, pages: bool) -> float:
    """A batch of each shard an hour; the second half of the hours is measured."""
    declared = Aggregate("views", event, by="page", views=Count(), pages=pages)
    table, dice = PartitionedTable(partitions, declared=(declared,)), random.Random(partitions)
    # Items with hundreds of watermarks take long to simulate.
    hours, events, used = 4 if partitions > 64 else 8, partitions * _PER_BATCH, 0.0
    for hour in range(hours):
        table.clock.advance(_HOUR)
        views = [f"/{dice.randrange(_GROUPS):04d}" for _ in range(events)]
        if event.packed:
            time = datetime.fromtimestamp(table.clock(), UTC).isoformat()
            table.accept_all(event, [{"page": page, "time": time, "client": f"c{n}"} for n, page in enumerate(views)])
        else:
            for index, page in enumerate(views):
                table.view(index % partitions, page)
        before = copy(table.memory.usage)
        table.deliver()
        if hour >= hours // 2:
            used += units(since(before, table.memory.usage))
    return used / ((hours - hours // 2) * events)


def rare(partitions: tuple[int, ...], days: float) -> dict[str, dict[str, float]]:
    """Units per batch of a shard that has one every ten minutes, by what they are for; the second half is measured."""
    return {str(number): _rare(number, days if number < 100 else days / 4) for number in partitions}


def _rare(partitions: int, days: float) -> dict[str, float]:
    declared = Aggregate("views", _PLAIN, by="page", views=Count(), pages=True)
    table, dice = PartitionedTable(partitions, declared=(declared,)), random.Random(partitions)
    ticks = round(timedelta(days=days).total_seconds() / _RARELY)
    before = copy(table.memory.usage)
    for tick in range(ticks):
        if tick == ticks // 2:
            table.meter.reset()
            before = copy(table.memory.usage)
        table.clock.advance(_RARELY)
        for partition in range(partitions):
            for _ in range(_FEW):
                table.view(partition, f"/{dice.randrange(_FEW_GROUPS):04d}")
        table.deliver()
    batches, meter = (ticks - ticks // 2) * partitions, table.meter
    writes: Any = {kind: used / batches for kind, used in meter.housekeeping.items()}
    reads: Any = {kind: READ_PRICE * used / batches for kind, used in meter.reads.items()}
    total = units(since(before, table.memory.usage)) / batches
    found = {
        "checkpoints": writes.get("checkpoints", 0.0),
        "reading_checkpoints": reads.get("checkpoints", 0.0),
        "reading_history": reads.get("deployments", 0.0),
        "reading_to_prune": reads.get("pruning", 0.0),
    }
    return {"units": total, **found, "updates_splits_and_pruning": total - sum(found.values())}
