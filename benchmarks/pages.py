"""Price of pages and of an item per group: the real log, distinct members, reads, CPU time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from benchmarks import workloads
from benchmarks.best_times import microseconds
from benchmarks.cpu import CHECKPOINT, CREATED, warm_aggregator
from benchmarks.databases import TABLE, MemoryDatabase, per_event, read_usage, since
from benchmarks.designs.known import Naive
from benchmarks.designs.ours import (
    PACKED_VIEW,
    SHARD,
    PackedEvents,
    PackedOnThree,
    PackedOnThreeAtOnce,
    PagedOnThree,
    PagedOnThreeAtOnce,
)
from benchmarks.https import https_client
from benchmarks.queue_and_stream import chunks, deliver
from demo.blog.traffic import View
from dynamodb_counters import Counters, Distinct
from dynamodb_counters._fold.layouts import ItemLayout
from dynamodb_counters._items.schema import PAGE_PREFIX, SK
from simulation.delivery.stream_api import lambda_record

_BATCH: Final = 100
"""Chunks in a batch of the stream."""

_READ: Final = 100
_CASES: Final = {
    "items, 100 chunks a batch": PackedOnThree,
    "pages, 100 chunks a batch": PagedOnThree,
    "items, one batch": PackedOnThreeAtOnce,
    "pages, one batch": PagedOnThreeAtOnce,
}


def measure(rounds: int, logged: int | None = None) -> dict[str, Any]:
    """All of it; nothing without the real log."""
    if not workloads.LOG.exists():
        return {}
    views = workloads.log()[:logged]
    increments = per_event(_delivered(Naive, views).usage, len(views))
    log = {
        **{name: _counted(design, views) for name, design in _CASES.items()},
        "an increment for each, not exact": {"units": 3 * increments["units"], "calls": 3 * increments["calls"]},
    }
    distinct = {
        f"{title}, {kind}": _counted(_distinct(by, pages=kind == "pages"), views)
        for title, by in (("clients of a day", "time:day"), ("clients of a URL", "url"))
        for kind in ("items", "pages")
    }
    return {"log": log, "distinct": distinct, "reads": _reads(views), "cpu": _cpu(views, rounds)}


def _delivered(design: type[Any], views: Sequence[View]) -> MemoryDatabase:
    deliver(design(database := MemoryDatabase()), database, views, _BATCH)
    return database


def _counted(design: type[PackedEvents], views: Sequence[View]) -> dict[str, float]:
    """Units per event end to end, with no group there before; and the requests that counting takes."""
    database = MemoryDatabase()
    counted = since(deliver(design(database), database, views, _BATCH), database.usage)
    counting = per_event(counted, len(views))
    return {**per_event(database.usage, len(views)), "counting": counting["units"], "calls": counting["calls"]}


def _distinct(by: str, *, pages: bool) -> type[PackedEvents]:
    class Members(PackedEvents):
        declarations = Distinct("visitors", PACKED_VIEW, by=by, member="clientId", pages=pages)._parts

    return Members


def _reads(views: Sequence[View]) -> dict[str, dict[str, float]]:
    """Units and calls of reads: of a process that has read before, and of one that has read nothing."""
    database = _delivered(PagedOnThree, views)
    by_url, client, clock = PagedOnThree.views, database.client, database.clock
    urls = list(dict.fromkeys(view.url for view in views))[:_READ]
    queries = [(by_url, {"url": url}) for url in urls]
    process = Counters(TABLE, client=client, clock=clock)
    process.get_many(queries)
    usage_of = partial(read_usage, database.usage)
    pages = [item for item in database.items(TABLE) if item[SK]["S"].startswith(f"{PAGE_PREFIX}{by_url.name}#")]
    page_groups = [{group[SK]["S"] for group in ItemLayout(by_url).images(page)} for page in pages]
    readers = [Counters(TABLE, client=client, clock=clock) for _ in urls]
    cold = [usage_of(lambda new=new, url=url: new.get(by_url, url=url)) for new, url in zip(readers, urls, strict=True)]  # type: ignore[misc]
    many = usage_of(lambda: process.get_many(queries))
    keys = {by_url._sk_template.render({"url": url}) for url in urls}
    touched = sum(not keys.isdisjoint(groups) for groups in page_groups)
    return {
        "a group": usage_of(lambda: process.get(by_url, url=urls[0])),
        "a group, process that has read nothing": {
            name: sum(usage[name] for usage in cold) / len(cold) for name in ("units", "calls")
        },
        "100 groups": {**many, "pages": touched, "units_to_pages": many["units"] / touched},
        "all groups": {**usage_of(lambda: list(process.groups(by_url))), "pages": len(pages)},
    }


def _cpu(views: Sequence[View], rounds: int) -> dict[str, Any]:
    """CPU time of counting the log where all groups are there, over HTTPS."""
    with https_client(CHECKPOINT) as client:
        runs = {name: _batches(design, views, client) for name, design in _CASES.items()}
        costs = microseconds({name: (len(views), run) for name, run in runs.items()}, rounds)
    return {name: {"microseconds": cost} for name, cost in costs.items()}


def _batches(design: type[PackedEvents], views: Sequence[View], client: Any) -> Callable[[], object]:
    """Return what counts a month of the log, in a process that has counted the month before."""
    counting = design(database := MemoryDatabase())
    deliver(counting, database, views, _BATCH)
    month_later = [
        view._replace(time=(datetime.fromisoformat(view.time) + timedelta(days=30)).isoformat()) for view in views
    ]
    stream = database.stream(TABLE)
    [shard] = stream.shards()
    before = len(stream.read(shard.id, None, 1_000_000).records)
    for part in chunks(month_later, counting.events_per_call):
        counting.accept(part)
    records = stream.read(shard.id, None, 1_000_000).records[before:]
    changes = [lambda_record(record, "") for record in records if "_chunk" in record["dynamodb"].get("NewImage", {})]
    table = replace(counting.table, client=client, clock=lambda: CREATED, remembered=counting.table.remembered)
    aggregator = warm_aggregator(table, counting.declarations)

    def run() -> None:
        # As if the process had not counted them yet: it reads the checkpoint again.
        for batch in chunks(changes, design.records_per_batch or _BATCH):
            aggregator._checkpoints._read.clear()
            aggregator.handle({"shardId": SHARD, "Records": batch})

    return run
