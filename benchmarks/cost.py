"""Units, calls and dollars per event of every design, and its error under redelivery."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from benchmarks.databases import TABLE, Database, MemoryDatabase, per_event, with_rule
from benchmarks.designs.base import Design
from benchmarks.designs.ours import Ours
from benchmarks.queue_and_stream import Mortality, Stream, chunks, deliver, deliver_at_least_once, deliver_steadily
from benchmarks.workloads import truth
from demo.examples.blog.traffic import View
from dynamodb_counters._cost.ceilings import UNITS_PER_KEY
from dynamodb_counters.testing._dynamodb.capacity import Usage
from simulation.faults.faulty_client import FaultyClient


def cost(design: type[Design], views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count a workload in memory, the stream in batches of that many records, and return what it took."""
    counting = design(database := MemoryDatabase())
    deliver(counting, database, views, batch)
    ceilings = _ceilings(database.usage, views, counts_in_stream=design.streamed is not None)
    return {**per_event(database.usage, len(views)), "exact": _error(counting, views) == 0.0, **ceilings}


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


def _ceilings(usage: Usage, views: Sequence[View], *, counts_in_stream: bool) -> dict[str, Any]:
    """The highest rate of one hot counter, that of the most viewed page: no partition key takes more units."""
    [(url, events)] = truth(views).most_common(1)
    written = [(key, units) for (table, *key), units in usage.items.items() if table == TABLE]
    on_key: defaultdict[str, float] = defaultdict(float)
    for key, units in written:
        # A part takes chunks of all pages, so only its share of each is one page's.
        on_key[key[0]] += units * events / len(views) if key[0].startswith("PACK#") else units
    others = (f"{url}_", "PACK#", "CHECKPOINT")
    hottest = max(units for key, units in on_key.items() if key == f"URL#{url}" or key.startswith(others))
    aggregation = sum(units for key, units in written if _is_counter(key))
    return {
        "counter_events_per_second": UNITS_PER_KEY * events / hottest,
        "aggregation_write_units": aggregation / len(views) if counts_in_stream else None,
    }


def _is_counter(key: Sequence[str]) -> bool:
    # An hour or a minute is the whole key.
    return len(key) == 1 or not (key[1].startswith("T#") or key[0].startswith("PACK#"))


def _error(counting: Design, views: Sequence[View]) -> float:
    """The sum of all deviations in percent of all events."""
    right, found = truth(views), counting.counts()
    return 100 * sum(abs(right[url] - found.get(url, 0)) for url in right | found) / len(views)
