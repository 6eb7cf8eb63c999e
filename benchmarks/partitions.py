"""What the number of a table's partitions does to the price of an aggregate, on simulated days."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from benchmarks.metering import Units, watermark_bytes
from benchmarks.partitioned_table import HOURS, PAGES, PartitionedTable
from benchmarks.shards import WINDOW_SECONDS
from dynamodb_counters.errors import CommitError
from dynamodb_counters.testing._dynamodb.capacity import item_bytes

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
    sizes: dict[str, list[int]] = defaultdict(list)
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
            _weigh(table, sizes)
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
        "groups": {name: {**_per_update(units, shared), **_sizes(sizes[name])} for name, units in meter.groups.items()},
    }


def long_tail(partitions: int, shared: float, days: int) -> dict[str, Any]:
    """Groups touched now and then, each time from any partition; the second half of so many days is measured.

    Only these touches are simulated: what shards cost per update (`shared`) is that of a busy table.
    """
    table, dice = (
        PartitionedTable(partitions, label=_rate, declared=(PAGES,), only_events=True),
        random.Random(partitions),
    )
    ticks = days * _DAY // _TAIL_STEP
    pages = {f"{rate}-{number}": rate for rate, groups in _TAIL.items() for number in range(groups)}
    touches: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for page, rate in pages.items():
        for _ in range(rate * days):
            touches[dice.randrange(ticks)].append((dice.randrange(partitions), page))
    sizes: dict[str, list[int]] = defaultdict(list)
    for tick in range(ticks):
        table.clock.advance(_TAIL_STEP)
        for partition, page in touches[tick]:
            table.view(partition, page)
            if tick > ticks // 2:
                sizes[str(pages[page])].append(item_bytes(table.item(f"PAGE#{page}")))
        table.deliver()
        if tick == ticks // 2:
            table.meter.reset()
    groups = table.meter.groups
    return {rate: {**_per_update(groups[rate], shared), **_sizes(sizes[rate])} for rate in map(str, _TAIL)}


def corrected(shared: float, days: int) -> dict[str, Any]:
    """An hour bucket that each of 100 partitions corrects once a day: all at once, or spread over the day.

    The units are those of the last day. `full_on_day` is the day from which on the item could take no more.
    """
    return {
        name: _corrected(step, shared, days) for name, step in (("at once", 0), ("over the day", _DAY // CORRECTING))
    }


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


def _weigh(table: PartitionedTable, sizes: dict[str, list[int]]) -> None:
    sizes["hot total"].append(item_bytes(table.item("TOTAL")))
    sizes["leaderboard"].append(item_bytes(table.item("PLAYER#best")))
    # Items are kept in the order of their creation: the last bucket of a tier is the present one.
    buckets = table.memory.tables["counters"].partitions["TRAFFIC"]
    for tier, item in {sk.split("#")[2]: item for sk, item in buckets.items()}.items():
        sizes[_BUCKETS[tier]].append(item_bytes(item))


def _per_update(units: Units, shared: float) -> dict[str, float]:
    """Write units per update of some items, by what they are for; `shared` is their part of what shards cost."""
    found = {
        "updating": units.updating / units.updates,
        "refused": units.refused / units.updates,
        "pruning": units.pruning / units.updates,
        "index": units.index / units.updates,
        "shards": shared,
    }
    without = (units.careless + units.index) / units.updates
    return {"updates": units.updates, **found, "write_units": sum(found.values()), "not_exact": without}


def _sizes(found: Sequence[int]) -> dict[str, float]:
    return {"bytes": sum(found) / max(len(found), 1), "peak_bytes": max(found, default=0)}
