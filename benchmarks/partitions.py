"""Price of an aggregate by the number of the table's partitions, on simulated days."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from copy import copy
from typing import Any, Final, NamedTuple

from benchmarks.databases import since
from benchmarks.metering import Units, watermark_bytes
from benchmarks.partitioned_table import HOURS, PAGES, PartitionedTable
from benchmarks.shards import WINDOW_SECONDS
from dynamodb_counters._items.item_sizes import item_bytes
from dynamodb_counters.errors import CommitError

_DAY: Final = 86_400

CORRECTING: Final = 100
"""Partitions that correct a bucket."""

_PAGES_PER_SHARD: Final = 60
_BUCKETS: Final = {"H": "hour bucket", "D": "day bucket", "N": "month bucket"}

_TAIL: Final = {5: 8, 20: 3, 100: 1, 300: 1}
"""Touches per day, and how many groups of them: the rarer, the more, to see as many touches."""

_TAIL_STEP: Final = WINDOW_SECONDS // 3


class Cadence(NamedTuple):
    """A batch per shard every so many minutes, of so many views of the shard's own pages."""

    minutes: int
    views: int


def cadence(partitions: int) -> Cadence:
    """Thinner than life, and the thinner the more shards there are, or it would run for hours.

    So what a shard costs (a checkpoint per window at least) is shared by fewer updates than in life.
    """
    if partitions == 1:
        return Cadence(1, 2)
    if partitions <= 16:
        return Cadence(5, 5)
    return Cadence(30 if partitions <= 100 else 60, 30)


def measure(partitions: int, days: float, tail_days: int, *, staggered: bool = True) -> dict[str, Any]:
    """Everything that depends on the number of a table's partitions; times are simulated days.

    Shards are replaced one after the other (`staggered`) or all at once.
    """
    found = busy(partitions, days, staggered=staggered)
    shared = sum(found["shards"].values())
    return {**found, "long_tail": long_tail(partitions, shared, tail_days) if tail_days else {}}


def busy(partitions: int, days: float, *, staggered: bool) -> dict[str, Any]:
    """Batches on every shard, each with views of pages and a score of one player; the second half is measured."""
    table = PartitionedTable(partitions, label=_hot, staggered=staggered)
    dice, pace = random.Random(partitions), cadence(partitions)
    ticks = round(days * _DAY / (60 * pace.minutes))
    longest = 0
    for tick in range(ticks):
        table.clock.advance(60 * pace.minutes)
        for partition in range(partitions):
            for _ in range(pace.views):
                # All minutes since the last batch, so that a bucket's slots fill as in life.
                at = table.clock() - dice.randrange(60 * pace.minutes)
                table.view(partition, f"{partition}-{dice.randrange(_PAGES_PER_SHARD)}", at)
            table.score(partition, "best", dice.randrange(1, 100))
        table.deliver()
        if tick == ticks // 2:
            table.meter.reset()
        if tick > ticks // 2:
            longest = max([longest, *watermark_bytes(table.item("TOTAL"))])
    meter = table.meter
    shards = {kind: units / meter.touched for kind, units in meter.housekeeping.items()}
    shared = sum(shards.values())
    return {
        "minutes_per_batch": pace.minutes,
        "updates_per_batch": meter.touched / (ticks - ticks // 2 - 1) / partitions,
        "shards": shards,
        "reads": {kind: units / meter.touched for kind, units in meter.reads.items()},
        "watermark_bytes": longest,
        "groups": {name: _per_update(units, shared) for name, units in meter.groups.items()},
    }


def long_tail(partitions: int, shared: float, days: int) -> dict[str, Any]:
    """Groups touched now and then, each time from any partition; the second half of so many days is measured.

    Only these touches are simulated: what shards cost per update (`shared`) is that of a busy table.
    """
    table = PartitionedTable(partitions, label=_rate, declared=(PAGES,), only_events=True)
    dice = random.Random(partitions)
    ticks = days * _DAY // _TAIL_STEP
    pages = {f"{rate}-{number}": rate for rate, groups in _TAIL.items() for number in range(groups)}
    touches: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for page, rate in pages.items():
        for _ in range(rate * days):
            touches[dice.randrange(ticks)].append((dice.randrange(partitions), page))
    for tick in range(ticks):
        table.clock.advance(_TAIL_STEP)
        for partition, page in touches[tick]:
            table.view(partition, page)
        table.deliver()
        if tick == ticks // 2:
            table.meter.reset()
    return {rate: _per_update(table.meter.groups[rate], shared) for rate in map(str, _TAIL)}


def corrected(shared: float, days: int) -> dict[str, Any]:
    """An hour bucket that each of 100 partitions corrects once a day: all at once, or spread over the day.

    The units are those of the last day. `full_on_day` is the day from which on the item could take no more.
    """
    steps = {"at once": 0, "over the day": _DAY // CORRECTING}
    return {name: _corrected(step, shared, days) for name, step in steps.items()}


def _corrected(step: int, shared: float, days: int) -> dict[str, Any]:
    table = PartitionedTable(CORRECTING, label=_bucket, declared=(HOURS,), only_events=True)
    hour, full_on_day = table.clock(), None
    for day in range(1, days + 1):
        try:
            for partition in range(CORRECTING):
                table.clock.now = hour + day * _DAY + partition * step
                table.view(partition, "corrected", hour)
                if step:
                    table.deliver()
            table.deliver()
            table.clock.advance(2 * WINDOW_SECONDS)
            table.deliver()
        except CommitError:
            full_on_day = day
            break
        if day == days - 1:
            table.meter.reset()
    [item] = [item for item in table.memory.items() if "#H#" in item["sk"]["S"]]
    return {**_per_update(table.meter.groups["bucket"], shared), "bytes": item_bytes(item), "full_on_day": full_on_day}


def _hot(pk: str, sk: str) -> str | None:
    """The items that all shards feed."""
    if pk == "TRAFFIC":
        return _BUCKETS[sk.split("#")[2]]
    return "hot total" if pk == "TOTAL" else "leaderboard" if pk.startswith("PLAYER#") else None


def _rate(pk: str, _sk: str) -> str | None:
    return pk.removeprefix("PAGE#").partition("-")[0]


def _bucket(_pk: str, sk: str) -> str | None:
    return "bucket" if "#H#" in sk else None


def _per_update(units: Units, shared: float) -> dict[str, float]:
    """Write units per update of some items, by what they are for; `shared` is their part of what shards cost."""
    kinds = ("updating", "refused", "pruning", "index")
    found = {kind: getattr(units, kind) / units.updates for kind in kinds} | {"shards": shared}
    without = (units.careless + units.index) / units.updates
    return {"updates": units.updates, **found, "write_units": sum(found.values()), "not_exact": without}


REPLAYED_SHARDS: Final = 10
_REPLAYED_MINUTES: Final = 5
_REPLAYED_VIEWS: Final = 10
"""Views of each shard in so many minutes."""

_REPLAYED_PAGES: Final = 200


def redelivered(hours: int = 24) -> dict[str, Any]:
    """Redeliver a batch that was large enough to move its shard's checkpoint, one that was not, and a stream."""
    return {
        "200_items": _batch(200, new_process=True),
        "20_items": _batch(20, new_process=False),
        "20_items_new_process": _batch(20, new_process=True),
        f"{hours}_hours_of_{REPLAYED_SHARDS}_partitions": _replay(hours),
    }


def _batch(items: int, *, new_process: bool) -> dict[str, Any]:
    """Deliver a batch again two minutes later; a new process knows nothing of its shard."""
    table = PartitionedTable(1, declared=(PAGES,), keeps_events=True)
    for index in range(items):
        table.view(0, str(index))
    table.deliver()
    table.clock.advance(120)
    if new_process:
        table.restart()
    [(partition, event)] = table.delivered
    return _again(table, lambda: table.invoke(partition, event))


def _replay(hours: int) -> dict[str, Any]:
    """Count the views of so many hours, then create the mapping again, which starts at the stream's first record."""
    table, dice = PartitionedTable(REPLAYED_SHARDS, declared=(PAGES,), keeps_events=True), random.Random(1)
    for _ in range(hours * 60 // _REPLAYED_MINUTES):
        table.clock.advance(_REPLAYED_MINUTES * 60)
        for partition in range(REPLAYED_SHARDS):
            for _ in range(_REPLAYED_VIEWS):
                table.view(partition, str(dice.randrange(_REPLAYED_PAGES)))
        table.deliver()
    table.restart()
    return _again(table, lambda: table.stream.replay(list(table.delivered), table.invoke))


def _again(table: PartitionedTable, redeliver: Callable[[], object]) -> dict[str, Any]:
    """Consumption of a second delivery, and how many counts are wrong after it."""
    items = {item["pk"]["S"]: item for item in table.memory.items() if "views" in item}
    seen = len(table.delivered)
    before = copy(table.memory.usage)
    redeliver()
    used = since(before, table.memory.usage)
    after = {item["pk"]["S"]: item for item in table.memory.items() if "views" in item}
    events = [event for _, event in table.delivered[: seen or 1]]
    return {
        "records": sum(
            "NewImage" in r["dynamodb"] and r["eventName"] == "INSERT" for e in events for r in e["Records"]
        ),
        "shards": len({event["shardId"] for event in events}),
        "items": len(items),
        "write_units": used.writes,
        "read_units": used.reads,
        "wrong": sum(after[pk]["views"] != {"N": str(table.views[pk.removeprefix("PAGE#")])} for pk in after),
    }
