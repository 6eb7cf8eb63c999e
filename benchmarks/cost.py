"""Units, calls and dollars per event of every design, and its error under redelivery."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from benchmarks.databases import TABLE, EngineDatabase, MemoryDatabase, per_event
from benchmarks.designs.base import Design
from benchmarks.queue_and_stream import Mortality, Stream, deliver, deliver_at_least_once, deliver_steadily
from benchmarks.workloads import truth
from demo.blog.traffic import View
from simulation.faults.faulty_client import FaultyClient
from simulation.memory.memory_client import Usage


def cost(design: type[Design], views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count a workload in memory, the stream in batches of that many records, and return what it took."""
    counting = design(database := MemoryDatabase())
    accepted = deliver(counting, database, views, batch)
    return {
        **per_event(database.usage, len(views)),
        "accept_calls": accepted.calls / len(views),
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


def on_engine(engine: Any, design: type[Design], views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count a subsample on DynamoDB Local, and the same in memory."""
    with EngineDatabase(engine) as database:
        deliver(counting := design(database), database, views, batch)
        error, reported = _error(counting, views), per_event(database.usage, len(views))
    by = {"engine": reported, "rule": cost(design, views, batch)}
    figures = ("write_units", "read_units", "calls")
    return {f"{name}_{figure}": by[name][figure] for figure in figures for name in by} | {"exact": error == 0.0}


def _aggregation(usage: Usage, events: int) -> float:
    """Write units per event for the counters, of which an hour or a minute is the whole key."""
    keys = [(key, units) for (table, *key), units in usage.items.items() if table == TABLE]
    return sum(units for key, units in keys if not (key[-1].startswith("T#") or key[0].startswith("PACK#"))) / events


def _error(counting: Design, views: Sequence[View]) -> float:
    """Return the sum of all deviations in percent of all events."""
    right, counts = truth(views), counting.counts()
    return 100 * sum(abs(right[url] - counts.get(url, 0)) for url in right | counts) / len(views)
