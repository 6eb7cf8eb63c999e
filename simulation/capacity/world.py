"""The world of a workload: writers that get so many events per second, a table with limits, a function per shard."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean
from typing import Any, Final, NamedTuple, cast

from botocore.exceptions import ClientError

from dynamodb_counters import Aggregate, Count, Event, Packed, Ranking, Window
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._cost import functions
from dynamodb_counters._cost.counted_items import Counted
from dynamodb_counters._cost.workload_settings import Workload
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._items.table_schema import TYPE
from dynamodb_counters._table import CONCURRENCY, Table
from dynamodb_counters._writes.accept import accept_many
from dynamodb_counters.errors import CommitError
from simulation.aws import account_concurrency
from simulation.clock import VirtualClock
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.queue.throttled_table import ThrottledTable
from simulation.queue.throttles import Limits
from simulation.queue.virtual_threads import VirtualPool, VirtualThreads

_TICK: Final = 0.02
"""Seconds after which a thread looks again for what it waits for; events come so often, too."""

_PER_CALL: Final = 25
_TIMEOUT: Final = 60.0
_WINDOW_SECONDS: Final = 900
_BITS: Final = 280
"""Bits of an event, all at random; its item has less than a KB."""

_EVENTS_PER_BUCKET: Final = 10_000
_WARM: Final = 0.25
"""Share of a run before its backlog is looked at: on average over the next such share, and over the last one."""


class Outcome(NamedTuple):
    """Growth of the backlog, as a share of the events that came meanwhile, and throttles per event."""

    growth: float
    throttles: float


@dataclass(frozen=True, slots=True)
class Declared:
    """Declarations of a workload: the event and what counts it; and its events."""

    event: Event
    counting: tuple[Declaration, ...]
    load: Workload

    @classmethod
    def of(cls, load: Workload) -> Declared:
        [first, *_] = load.counted
        pk = "EVENT#{id}" if first.scattered else "GROUP#{g0}"
        bucket = timedelta(seconds=max(1, int(_EVENTS_PER_BUCKET * load.parts / load.rate)))
        packed = None if load.packed is None else Packed("time", bucket=bucket, parts=load.parts)
        event = Event("event", pk=pk, sk="EVENT#{time}#{id}", packed=packed)
        declared = (_declared(place, one, event) for place, one in enumerate(load.counted))
        return cls(event, tuple(declared), load)

    def events(self, clock: Callable[[], float], rng: random.Random) -> Iterator[dict[str, Any]]:
        """Events without end, of the groups that the workload says, at the time they are asked for."""
        places = [place for place, one in enumerate(self.load.counted) if not one.tiers]
        drawn = [_groups(self.load.counted[place], rng) for place in places]
        for number in itertools.count():
            groups = {f"g{place}": next(each) for place, each in zip(places, drawn, strict=True)}
            yield {
                "id": f"{rng.getrandbits(32):08x}{number:x}",
                "time": int(clock()),
                "more": f"{rng.getrandbits(_BITS):x}",
                **groups,
            }


def _declared(place: int, one: Counted, event: Event) -> Declaration:
    own = "GROUP" if not one.scattered else f"COUNTED{place}"
    if one.tiers:
        return Window(f"w{place}", event, pk=own + "#{g0}", time="time", tiers=tuple(tier.name for tier in one.tiers))
    ranking = Ranking(measure="n", leaderboard="BEST", write_shards=one.write_shards) if one.ranked else None
    spread = 1 if one.ranked else one.write_shards
    pk = f"{own}#{{g{place}}}"
    return Aggregate(
        f"a{place}", event, pk=pk, sk="STATISTICS", measures={"n": Count()}, ranking=ranking, write_shards=spread
    )


def _groups(one: Counted, rng: random.Random) -> Iterator[int]:
    if not one.skew:
        while True:
            yield rng.randrange(one.groups)
    weights = list(itertools.accumulate((rank + 1) ** -one.skew for rank in range(one.groups)))
    while True:
        yield from rng.choices(range(one.groups), cum_weights=weights, k=1000)


class World:
    """An offered load, and what becomes of it."""

    def __init__(
        self, load: Workload, limits: Limits, concurrency: int = account_concurrency.DEFAULT, seed: int = 0
    ) -> None:
        self._load, self._concurrency = load, concurrency
        self._threads, self._rng = VirtualThreads(VirtualClock()), random.Random(seed)
        self._clock = self._threads.clock
        self._table = ThrottledTable(self._threads, limits, seed, shards=load.shards(), latency=functions.ROUND_TRIP)
        self._declared = Declared.of(load)
        settings = Settings(load.batch, max_bytes=None, window_seconds=_WINDOW_SECONDS)
        self._mapping = EventSourceMapping(self._table.stream, self._clock, settings)
        self._waiting = deque[dict[str, Any]]()
        self._offered = self._counted = self._running = 0
        self.failed = 0
        """Invocations."""
        self._backlog: list[int] = []
        self._turns = deque[str]()

    def run(self, seconds: float) -> Outcome:
        """Offer the load for so long; see how the backlog has grown since a while after the beginning."""
        begin = self._clock()
        ends_at = begin + seconds
        self._clock.call_at(begin, lambda: self._arrive(begin, self._declared.events(self._clock, self._rng)))
        writers = 1 if self._load.packed is not None else 8 + int(self._load.rate / 400)
        for work in (*[self._write] * writers, *(self._server(shard) for shard in self._mapping.shards())):
            self._threads.start(work, ends_at)
        self._clock.advance(seconds - _TICK)
        part = int(len(self._backlog) * _WARM)
        grown = fmean(self._backlog[-part:]) - fmean(self._backlog[part : 2 * part])
        found = Outcome(grown / (self._load.rate * seconds * (1 - 2 * _WARM)), self._table.throttled / self._offered)
        # Its threads end.
        self._clock.advance(1.0)
        return found

    def _arrive(self, begin: float, events: Iterator[dict[str, Any]]) -> None:
        due = int((self._clock() - begin + _TICK) * self._load.rate)
        self._waiting.extend(itertools.islice(events, due - self._offered))
        self._offered = due
        self._backlog.append(self._offered - self._counted)
        self._clock.call_at(self._clock() + _TICK, lambda: self._arrive(begin, events))

    def _write(self) -> None:
        """Accept what waits: plain events as soon as any do, packed ones as many as a flush has."""
        table, packed = self._reached(), self._load.packed
        least = 1 if packed is None else int(packed * self._load.parts)
        most = max(_PER_CALL, least)
        while True:
            if len(self._waiting) < least:
                self._threads.sleep(_TICK / 4)
                continue
            events = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
            outcomes = accept_many(table, self._declared.event, events)
            self._waiting.extend(event for event, one in zip(events, outcomes, strict=True) if one.is_failed)

    def _server(self, shard: str) -> Callable[[], None]:
        """The function of a shard: gather a batch, wait for a free execution, count it, and be billed for it."""
        aggregator = Aggregator(self._reached(), self._declared.counting, quarantine_retention_seconds=86_400)

        def serve() -> None:
            while True:
                self._gather(shard)
                self._turns.append(shard)
                while self._running >= self._concurrency or self._turns[0] != shard:
                    self._threads.sleep(_TICK / 10)
                self._turns.popleft()
                self._running += 1
                self._invoke(shard, aggregator)
                self._running -= 1

        return serve

    def _gather(self, shard: str) -> None:
        since = None
        while True:
            waiting = len(self._table.stream.read(shard, self._mapping.checkpoint(shard), self._load.batch).records)
            if waiting and since is None:
                since = self._clock()
            if since is not None and (waiting == self._load.batch or self._clock() - since >= self._load.gather):
                return
            self._threads.sleep(_TICK / 4)

    def _invoke(self, shard: str, aggregator: Aggregator) -> None:
        delivery = self._mapping.poll(shard)
        if delivery is None:
            return
        self._threads.sleep(functions.INVOCATION)
        try:
            report = aggregator.handle(delivery.event, lambda: _TIMEOUT)
        except (ClientError, CommitError):
            self._mapping.fail(delivery)
            self.failed += 1
            return
        # Its own changes come back to it, and are folded as events are.
        types = (record["dynamodb"].get("NewImage", {}).get(TYPE, {}).get("S", "") for record in delivery.records)
        events = report.events - sum(not each.startswith(self._declared.event.name) for each in types)
        work = functions.counting(events, report.updated, packed=self._load.packed is not None)
        self._threads.sleep(work.cpu * functions.GB_PER_CPU / functions.MEMORY_GB)
        self._mapping.settle(delivery, {"state": report.state(delivery.event)})
        self._counted += events

    def _reached(self) -> Table:
        """The table as a process reaches it, in virtual time."""
        client, jitter = cast("Any", self._table), self._rng.random
        table = Table(self._table.name, client, clock=self._clock, sleep=self._threads.sleep, jitter=jitter)
        table.__dict__["pool"] = VirtualPool(self._threads, CONCURRENCY)
        return table
