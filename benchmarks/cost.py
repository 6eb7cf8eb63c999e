"""Units, calls and dollars per event of every design, and its error under redelivery."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from benchmarks import queue_and_stream, workloads
from benchmarks.databases import EngineDatabase, MemoryDatabase
from benchmarks.designs import DESIGNS, Design, Ours
from benchmarks.designs.base import TABLE
from benchmarks.designs.ours import OursOnThree
from benchmarks.queue_and_stream import Mortality, Stream, chunks
from demo.examples.blog.traffic import View
from simulation.dynamodb.capacity import UNITS_PER_SECOND, Usage, dollars_per_million
from simulation.faults.faulty_client import FaultyClient


def cost(design: type[Design], views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count a workload in memory, the stream in batches of that many records, and return what it took."""
    database = MemoryDatabase()
    counting = design(database)
    queue_and_stream.deliver(counting, database, views, batch)
    found = _per_event(database.usage, len(views))
    found["exact"] = _error(counting, views) == 0.0
    found |= _ceilings(database.usage, views, counts_in_stream=design.streamed is not None)
    return found


def redelivered(design: type[Design], views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count a workload under redelivery and crashes and return how wrong the counts are."""
    database, mortality = MemoryDatabase(), Mortality()
    database.client = FaultyClient(database.client, mortality.decide, random.Random(1))
    counting = design(database)
    queue_and_stream.deliver_at_least_once(counting, database, mortality, views, batch=batch)
    error = _error(counting, views)
    return {"error_percent": error, "exact": error == 0.0}


def steady(views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count with ours while events keep coming: its own changes then take room in each batch of the stream."""
    database = MemoryDatabase()
    counting = Ours(database)
    queue_and_stream.deliver_steadily(counting.accept, Stream(database, TABLE, batch), counting.aggregate, views)
    return _per_event(database.usage, len(views))


def accepting(views: Sequence[View]) -> dict[str, Any]:
    """Accept a workload with ours, without counting it."""
    database = MemoryDatabase()
    counting = Ours(database)
    for part in chunks(views, 1000):
        counting.accept(part)
    return _per_event(database.usage, len(views))


def three_on_log(batch: int) -> dict[str, Any]:
    """Count views per page, requests per client and the site's total of a real log."""
    return cost(OursOnThree, workloads.log(), batch)


def on_engine(
    engine: Any, views: Sequence[View], batch: int, designs: Sequence[type[Design]] = DESIGNS
) -> dict[str, Any]:
    """Count a subsample on DynamoDB Local with every design, and the same in memory."""
    found: dict[str, Any] = {}
    for design in designs:
        with EngineDatabase(engine) as database:
            counting = design(database)
            queue_and_stream.deliver(counting, database, views, batch)
            reported = _per_event(database.usage, len(views))
            exact = _error(counting, views) == 0.0
        ruled = cost(design, views, batch)
        found[design.name] = {
            "engine_write_units": reported["write_units"],
            "rule_write_units": ruled["write_units"],
            "engine_read_units": reported["read_units"],
            "rule_read_units": ruled["read_units"],
            "engine_calls": reported["calls"],
            "rule_calls": ruled["calls"],
            "exact": exact,
        }
    return found


def _per_event(usage: Usage, events: int) -> dict[str, Any]:
    writes, reads = usage.writes / events, usage.reads / events
    return {
        "write_units": writes,
        "read_units": reads,
        "calls": usage.calls / events,
        "dollars_per_million": dollars_per_million(writes, reads),
    }


def _ceilings(usage: Usage, views: Sequence[View], *, counts_in_stream: bool) -> dict[str, Any]:
    """The highest rate of one hot counter, that of the most viewed page."""
    [(url, events)] = workloads.truth(views).most_common(1)
    counters = [units for (table, *key), units in usage.items.items() if table == TABLE and _is_counter(key, url)]
    aggregation = sum(
        units for (table, *key), units in usage.items.items() if table == TABLE and _is_counter(key, None)
    )
    return {
        "counter_events_per_second": UNITS_PER_SECOND * events / max(counters),
        "aggregation_write_units": aggregation / len(views) if counts_in_stream else None,
    }


def _is_counter(key: Sequence[str], url: str | None) -> bool:
    if len(key) == 1:  # An hour or a minute.
        return url is None or key[0].startswith(f"{url}_")
    return not key[1].startswith("T#") and (url is None or key[0] == f"URL#{url}" or key[0] == "CHECKPOINT")


def _error(counting: Design, views: Sequence[View]) -> float:
    """The sum of all deviations in percent of all events."""
    right, found = workloads.truth(views), counting.counts()
    return 100 * sum(abs(right[url] - found.get(url, 0)) for url in right | found) / len(views)
