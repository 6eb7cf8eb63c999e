"""Units, calls and dollars per event of every design, and its error under redelivery."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from benchmarks.databases import TABLE, Database, MemoryDatabase, per_event, with_rule
from benchmarks.designs.base import Design
from benchmarks.designs.ours import Ours
from benchmarks.queue_and_stream import Mortality, Stream, chunks, deliver, deliver_at_least_once, deliver_steadily
from benchmarks.workloads import truth
from demo.blog.traffic import View
from simulation.faults.faulty_client import FaultyClient
from simulation.metered_table import Usage


def cost(design: type[Design], views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count a workload in memory, the stream in batches of that many records, and return what it took."""
    counting = design(database := MemoryDatabase())
    deliver(counting, database, views, batch)
    return {
        **per_event(database.usage, len(views)),
        "exact": _error(counting, views) == 0.0,
        "aggregation_write_units": _aggregation(database.usage, len(views)) if design.streamed else None,
    }


def redelivered(design: type[Design], views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count a workload under redelivery and crashes and return how wrong the counts are."""
    database, mortality = MemoryDatabase(), Mortality()
    database.client = FaultyClient(database.client, mortality.decide, random.Random(1))
    counting = design(database)
    deliver_at_least_once(counting, database, mortality, views, batch)
    error = _error(counting, views)
    return {"error_percent": error, "exact": error == 0.0}


def steady(design: type[Design], views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count while events keep coming: the design's own changes then take room in each batch of the stream."""
    database = MemoryDatabase()
    counting, stream = design(database), Stream(database, TABLE, batch)
    deliver_steadily(counting.accept, stream, counting.aggregate, views, design.events_per_call)
    return per_event(database.usage, len(views))


def accepting(views: Sequence[View]) -> dict[str, Any]:
    """Accept a workload with ours, without counting it."""
    counting = Ours(database := MemoryDatabase())
    for part in chunks(views, 1000):
        counting.accept(part)
    return per_event(database.usage, len(views))


def on_engine(engine: Any, design: type[Design], views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count a subsample on DynamoDB Local, and the same in memory."""
    errors = []

    def count(database: Database) -> None:
        counting = design(database)
        deliver(counting, database, views, batch)
        errors.append(_error(counting, views))

    found = with_rule(engine, count, len(views))
    return {**found, "exact": errors[0] == 0.0}


def _aggregation(usage: Usage, events: int) -> float:
    """Write units per event for the counters."""
    return sum(units for (table, *key), units in usage.items.items() if table == TABLE and _is_counter(key)) / events


def _is_counter(key: Sequence[str]) -> bool:
    # An hour or a minute is the whole key.
    return len(key) == 1 or not (key[1].startswith("T#") or key[0].startswith("PACK#"))


def _error(counting: Design, views: Sequence[View]) -> float:
    """The sum of all deviations in percent of all events."""
    right, found = truth(views), counting.counts()
    return 100 * sum(abs(right[url] - found.get(url, 0)) for url in right | found) / len(views)
