"""What the number of a table's partitions does to the price of an aggregate: the real handler on simulated days."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from benchmarks.metering import Meter, Units, bytes_without_watermarks, watermark_bytes
from benchmarks.shards import WINDOW_SECONDS, Partitions
from dynamodb_counters import Aggregate, Count, Event, Ranking, Sum, Window
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._stream.batch import APPLIED_THROUGH, Aggregator
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CommitError
from simulation.clock import VirtualClock
from simulation.dynamodb.capacity import item_bytes, write_units
from simulation.dynamodb.client import MemoryTable

DAY: Final = 86_400
TIMEOUT: Final = 60.0
"""The function's, by default."""

RATES: Final = (5, 20, 100, 300)
"""Touches per day of the long tail's groups."""

_VIEW: Final = Event("view", pk="PAGE#{page}", sk="VIEW#{id}")
_SCORE: Final = Event("score", pk="PLAYER#{player}", sk="SCORE#{id}")
TOTAL: Final = Aggregate("total", _VIEW, pk="TOTAL", sk="STATISTICS", measures={"views": Count()})
PAGES: Final = Aggregate("pages", _VIEW, pk="PAGE#{page}", sk="STATISTICS", measures={"views": Count()})
TRAFFIC: Final = Window("traffic", _VIEW, pk="TRAFFIC", time="at", tiers=("hour", "day", "month"))
TRAFFIC_BY_HOUR: Final = Window("traffic", _VIEW, pk="TRAFFIC", time="at", tiers=("hour",))
PLAYERS: Final = Aggregate(
    "players",
    _SCORE,
    pk="PLAYER#{player}",
    sk="STATISTICS",
    measures={"points": Sum("points")},
    ranking=Ranking(by="points", leaderboard="PLAYERS"),
)
DECLARED: Final = (TOTAL, PAGES, TRAFFIC, PLAYERS)

Image = dict[str, Any]


class _Inline(Executor):
    """Runs everything at once: threads would only cost time."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(function(*arguments, **named))
        return done


class World:
    """A table with so many partitions, its stream, and a process of the function for each partition."""

    def __init__(
        self,
        partitions: int,
        label: Callable[[str, str], str | None],
        *,
        staggered: bool = True,
        declared: tuple[Declaration, ...] = DECLARED,
        keeps_events: bool = False,
    ) -> None:
        self.partitions = partitions
        self.keeps_events = keeps_events
        self.clock = VirtualClock()
        self.memory = MemoryTable(self.clock)
        self.stream = self.memory.stream = Partitions(self.clock, partitions, staggered=staggered)
        self.memory.tables[self.memory.name].stream = self.stream
        self.meter = Meter(self.memory, label)
        self._table = Table("counters", self.meter, clock=self.clock, sleep=lambda _: None)  # type: ignore[arg-type]
        self._table.__dict__["pool"] = _Inline()
        self._declared = declared
        self.viewed = Counter[str]()
        self.delivered: list[tuple[int, Mapping[str, Any]]] = []
        self.restart()

    def restart(self) -> None:
        """Replace all processes of the function: the new ones know nothing."""
        self._processes = [
            Aggregator(self._table, self._declared, quarantine_retention_seconds=DAY) for _ in range(self.partitions)
        ]

    def view(self, partition: int, page: str, at: float | None = None) -> None:
        self.viewed[f"PAGE#{page}"] += 1
        self._put(partition, {"_type": {"S": "view"}, "page": {"S": page}, "at": {"N": str(int(at or self.clock()))}})

    def score(self, partition: int, player: str, points: int) -> None:
        values = {"player": {"S": player}, "points": {"N": str(points)}}
        self._put(partition, {"_type": {"S": "score"}, **values})

    def deliver(self) -> None:
        self.stream.deliver(self.invoke)

    def invoke(self, partition: int, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run the function, and return the state it asks Lambda to keep."""
        if self.keeps_events and event["Records"]:
            self.delivered.append((partition, event))
        report = self._processes[partition].handle(event, lambda: TIMEOUT)
        state = dict(event["state"])
        return state | ({APPLIED_THROUGH: report.applied_through} if report.applied_through else {})

    def item(self, pk: str, sk: str) -> Mapping[str, Any]:
        return self.memory.tables["counters"].find("GetItem", {"pk": {"S": pk}, "sk": {"S": sk}}) or {}

    def _put(self, partition: int, image: Image) -> None:
        keys = {"pk": {"S": f"EVENT#{partition}"}, "sk": {"S": "-"}}
        self.stream.put(partition, keys, None, {**keys, **image})


def per_touch(units: Units, shared: float) -> dict[str, float]:
    """Write units per update of a group of items, with its share of what shards cost."""
    updates = max(units.updates, 1)
    found = {
        "updating": units.updating / updates,
        "refused": units.refused / updates,
        "pruning": units.pruning / updates,
        "shards": shared,
        "index": units.index / updates,
    }
    return {
        "updates": units.updates,
        **found,
        "write_units": sum(found.values()),
        "not_exact": (units.careless + units.index) / updates,
    }


@dataclass(frozen=True)
class Cadence:
    """A batch per shard every so many minutes, of so many page views of the shard's own pages."""

    minutes: int
    pages: int


def cadence(partitions: int) -> Cadence:
    """Thinner than life, and thinner the more shards there are: what a shard costs is shared by fewer updates."""
    if partitions <= 1:
        return Cadence(1, 2)
    if partitions <= 16:
        return Cadence(5, 5)
    return Cadence(15, 15 if partitions <= 100 else 5)


_WATCHED: Final = {
    "total": "hot total",
    "traffic_hour": "hour bucket",
    "traffic_day": "day bucket",
    "traffic_month": "month bucket",
    "players": "leaderboard",
}
_PAGES_PER_SHARD: Final = 20


_BUCKETS: Final = {"H": "traffic_hour", "D": "traffic_day", "N": "traffic_month"}


def _label_busy(pk: str, sk: str) -> str | None:
    if pk == "TRAFFIC":
        return _BUCKETS[sk.split("#")[2]]
    return "total" if pk == "TOTAL" else "players" if pk.startswith("PLAYER#") else None


def busy(partitions: int, days: float, *, staggered: bool = True) -> dict[str, Any]:
    """Batches on every shard, each with views of pages, and a score of the one player; the second half is measured."""
    world, dice, pace = (
        World(partitions, _label_busy, staggered=staggered),
        random.Random(partitions),
        cadence(partitions),
    )
    ticks = round(days * DAY / (60 * pace.minutes))
    sizes: dict[str, list[int]] = {}
    watermarks: list[int] = []
    for tick in range(ticks):
        world.clock.advance(60 * pace.minutes)
        for partition in range(partitions):
            for _ in range(pace.pages):
                world.view(partition, f"{partition}-{dice.randrange(_PAGES_PER_SHARD)}")
            world.score(partition, "best", dice.randrange(1, 100))
        world.deliver()
        if tick == ticks // 2:
            world.meter.reset()
        if tick > ticks // 2:
            _weigh(world, sizes)
            watermarks += watermark_bytes(world.item("TOTAL", "STATISTICS"))[:1]
    meter = world.meter
    touched = meter.touched
    shared = sum(meter.housekeeping.values()) / touched
    groups = {
        name: {**per_touch(meter.groups[name], shared), **_sizes(sizes.get(name, []))}
        for name in _WATCHED
        if name in meter.groups
    }
    return {
        "minutes_per_batch": pace.minutes,
        "updates_per_shard_and_window": touched / (ticks - ticks // 2 - 1) / pace.minutes * 15 / partitions,
        "shared": {kind: units / touched for kind, units in meter.housekeeping.items()},
        "reads": {kind: units / touched for kind, units in meter.reads.items()},
        "watermark_bytes": max(watermarks, default=0),
        "groups": groups,
        "updates": touched,
    }


def _weigh(world: World, sizes: dict[str, list[int]]) -> None:
    for name, pk in (("total", "TOTAL"), ("players", "PLAYER#best")):
        sizes.setdefault(name, []).append(item_bytes(world.item(pk, "STATISTICS")))
    # Items are kept in the order of their creation: the last bucket of a tier is the present one.
    present = {
        _label_busy("TRAFFIC", sk): item for sk, item in world.memory.tables["counters"].partitions["TRAFFIC"].items()
    }
    for name, item in present.items():
        sizes.setdefault(str(name), []).append(item_bytes(item))


def _sizes(found: Sequence[int]) -> dict[str, float]:
    return {"mean_bytes": sum(found) / max(len(found), 1), "peak_bytes": max(found, default=0)}


_TAIL_DAYS: Final = 28
_TAIL_GROUPS: Final = {5: 8, 20: 3, 100: 1, 300: 1}
"""How many groups of each rate: the rarer, the more, to see as many touches."""


def long_tail(partitions: int, shared: float, days: int = _TAIL_DAYS) -> dict[str, Any]:
    """Groups touched now and then, each time from any partition; the second half of so many days is measured.

    What shards cost comes from a run with traffic on all of them (`shared`, per update).
    """
    world = World(partitions, _rate_of, declared=(PAGES,))
    dice = random.Random(partitions)
    step = WINDOW_SECONDS // 3
    touches: dict[int, list[tuple[int, str]]] = {}
    for rate, groups in _TAIL_GROUPS.items():
        for group in range(groups):
            for _ in range(rate * days):
                touches.setdefault(dice.randrange(days * DAY // step), []).append(
                    (dice.randrange(partitions), f"{rate}-{group}")
                )
    sizes: dict[str, list[int]] = {}
    for tick in range(days * DAY // step):
        world.clock.advance(step)
        for partition, group in touches.get(tick, ()):
            world.view(partition, group)
        world.deliver()
        if tick == days * DAY // step // 2:
            world.meter.reset()
        if tick > days * DAY // step // 2 and tick % 12 == 0:
            for rate, groups in _TAIL_GROUPS.items():
                sizes.setdefault(str(rate), []).extend(
                    item_bytes(world.item(f"PAGE#{rate}-{group}", "STATISTICS")) for group in range(groups)
                )
    return {
        rate: {**per_touch(world.meter.groups[rate], shared), **_sizes(sizes[rate])} for rate in map(str, _TAIL_GROUPS)
    }


def _rate_of(pk: str, _sk: str) -> str | None:
    return pk.removeprefix("PAGE#").partition("-")[0]


CORRECTED_DAYS: Final = 90


def corrected(partitions: int, days: int = CORRECTED_DAYS) -> dict[str, Any]:
    """An hour bucket that each partition corrects once a day: some all at once, some spread over the day.

    The units are those of the last day's updates; `full_on_day` is the day on which the item could take no more.
    """
    found = {}
    for name, step in (("at once", 0.0), ("over the day", DAY / partitions)):
        world = World(partitions, lambda _pk, sk: "hour" if "#H#" in sk else None, declared=(TRAFFIC_BY_HOUR,))
        bucket = world.clock()
        row: dict[str, Any] = {"full_on_day": None}
        for day in range(days):
            if day == days - 1:
                world.meter.reset()
            for partition in range(partitions):
                world.clock.now = bucket + (day + 1) * DAY + partition * step
                world.view(partition, "corrected", bucket)
                if step or partition == partitions - 1:
                    try:
                        world.deliver()
                    except CommitError:
                        row["full_on_day"] = day + 1
                        break
            if row["full_on_day"]:
                break
            world.clock.advance(WINDOW_SECONDS * 2)
            world.deliver()
        [item] = [item for item in world.memory.items() if "#H#" in item["sk"]["S"]]
        found[name] = {**row, **per_touch(world.meter.groups["hour"], 0.0), "mean_bytes": float(item_bytes(item))}
    return found
