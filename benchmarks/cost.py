"""Write and read units, calls and dollars an event, and errors under redelivery, of every design."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks import delivery, workloads
from benchmarks.databases import EngineDatabase, MemoryDatabase
from benchmarks.delivery import MortalClient, chunks
from benchmarks.designs import DESIGNS, Design, Ours
from benchmarks.designs.base import TABLE
from benchmarks.designs.ours import OursOnThree
from benchmarks.usage import UNITS_A_SECOND, Usage, dollars_a_million
from demo.examples.blog.traffic import View


def cost(design: type[Design], views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count a workload in memory and tell what it took.

    Parameters
    ----------
    design : type of Design
        What counts.
    views : sequence of View
        What is counted.
    batch : int
        Records a batch of the stream.

    Returns
    -------
    dict
        Figures by name.
    """
    database = MemoryDatabase()
    counting = design(database)
    delivery.deliver(counting, database, views, batch)
    found = _per_event(database.usage, len(views))
    found["exact"] = _error(counting, views) == 0.0
    found |= _ceilings(database.usage, views, counts_in_stream=design.reads_stream)
    return found


def redelivered(design: type[Design], views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count a workload under redelivery and crashes and tell how wrong the counts are."""
    database = MemoryDatabase()
    database.client = mortal = MortalClient(database.client)
    counting = design(database)
    delivery.deliver_at_least_once(counting, database, mortal, views, batch=batch)
    error = _error(counting, views)
    return {"error_percent": error, "exact": error == 0.0}


def steady(views: Sequence[View], batch: int) -> dict[str, Any]:
    """Count with ours while events keep coming: its own changes then take room in each batch of the stream."""
    database = MemoryDatabase()
    counting = Ours(database)
    done, parts = 0, iter(chunks(views, delivery.QUEUE_BATCH))
    part: Sequence[View] | None = next(parts)
    while part is not None or done < len(database.records()):
        while part is not None and len(database.records()) < done + batch:
            counting.accept(part)
            part = next(parts, None)
        records = database.records()[done : done + batch]
        counting.aggregate(records)
        done += len(records)
    return _per_event(database.usage, len(views))


def accepting(views: Sequence[View]) -> dict[str, Any]:
    """Accept a workload with ours, without counting it."""
    database = MemoryDatabase()
    counting = Ours(database)
    for part in chunks(views, 1000):
        counting.accept(part)
    return _per_event(database.usage, len(views))


def three_on_log(batch: int) -> dict[str, Any]:
    """Count views a page, requests a client and the site's total of a real log."""
    return cost(OursOnThree, workloads.log(), batch)


def on_engine(
    engine: Any, views: Sequence[View], batch: int, designs: Sequence[type[Design]] = DESIGNS
) -> dict[str, Any]:
    """Count a subsample on DynamoDB Local with every design, and the same in memory."""
    found: dict[str, Any] = {}
    for design in designs:
        database = EngineDatabase(engine)
        try:
            counting = design(database)
            delivery.deliver(counting, database, views, batch)
            reported = _per_event(database.usage, len(views))
            exact = _error(counting, views) == 0.0
        finally:
            database.drop()
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
        "dollars_per_million": dollars_a_million(writes, reads),
    }


def _ceilings(usage: Usage, views: Sequence[View], *, counts_in_stream: bool) -> dict[str, Any]:
    """Tell the highest rate of one hot counter: its events are the most viewed page's."""
    [(url, events)] = workloads.truth(views).most_common(1)
    counters = [units for (table, *key), units in usage.items.items() if table == TABLE and _is_counter(key, url)]
    aggregation = sum(
        units for (table, *key), units in usage.items.items() if table == TABLE and _is_counter(key, None)
    )
    return {
        "counter_events_a_second": UNITS_A_SECOND * events / max(counters),
        "aggregation_write_units": aggregation / len(views) if counts_in_stream else None,
    }


def _is_counter(key: Sequence[str], url: str | None) -> bool:
    if len(key) == 1:  # An hour or a minute.
        return url is None or key[0].startswith(f"{url}_")
    return not key[1].startswith("T#") and (url is None or key[0] == f"URL#{url}" or key[0] == "CHECKPOINT")


def _error(counting: Design, views: Sequence[View]) -> float:
    """Give the sum of all deviations in percent of all events."""
    right, found = workloads.truth(views), counting.counts()
    return 100 * sum(abs(right[url] - found.get(url, 0)) for url in right | found) / len(views)
