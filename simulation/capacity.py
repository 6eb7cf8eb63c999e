"""An offered load in virtual time: writers of so many events per second, a table that throttles, the functions."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from botocore.exceptions import ClientError

from dynamodb_counters import Aggregate, Count, Event, Ranking
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._table import CONCURRENCY, Table
from dynamodb_counters._writes.accept import accept_many
from dynamodb_counters.errors import CommitError
from simulation.aws.sandboxes import CONCURRENT_EXECUTIONS
from simulation.clock import VirtualClock
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.queue.throttled_table import ThrottledTable
from simulation.queue.throttles import Limits
from simulation.queue.virtual_threads import VirtualPool, VirtualThreads

ROUND_TRIP: Final = 0.006
"""Seconds of a request to DynamoDB, as assumed."""

INVOCATION: Final = 0.02
"""Seconds of an invocation apart from its work, as assumed."""

_TICK: Final = 0.02
"""Seconds after which a thread looks again for what it waits for; events come so often, too."""

_PER_CALL: Final = 25
_BATCH: Final = 1000
_GATHER: Final = 0.1
_SHARDS: Final = 2
_TIMEOUT: Final = 60.0
_WINDOW_SECONDS: Final = 900

_EVENT: Final = Event("event", pk="EVENT#{id}", sk="EVENT#{id}")
_RANKED: Final = Aggregate(
    "ranked", _EVENT, pk="COUNTED#{group}", sk="STATISTICS", n=Count(), ranking=Ranking("n", "BEST")
)


class World:
    """So many events per second, ranked in so many groups, and what becomes of them."""

    def __init__(
        self, rate: float, groups: int, limits: Limits, concurrency: int = CONCURRENT_EXECUTIONS, seed: int = 0
    ) -> None:
        self._rate, self._groups, self._concurrency = rate, groups, concurrency
        self._threads, self._rng = VirtualThreads(VirtualClock()), random.Random(seed)
        self._clock = self._threads.clock
        self._table = ThrottledTable(self._threads, limits, seed, shards=_SHARDS, latency=ROUND_TRIP)
        settings = Settings(_BATCH, max_bytes=None, window_seconds=_WINDOW_SECONDS)
        self._mapping = EventSourceMapping(self._table.stream, self._clock, settings)
        self._waiting = deque[dict[str, Any]]()
        self._offered = self._running = 0
        self._turns = deque[str]()
        self.failed = 0
        """Invocations."""

    def run(self, seconds: float) -> int:
        """Offer the load for so long; return how many requests were throttled."""
        begin = self._clock()
        self._clock.call_at(begin, lambda: self._arrive(begin, self._events()))
        writers = 8 + int(self._rate / 400)
        for work in (*[self._write] * writers, *(self._server(shard) for shard in self._mapping.shards())):
            self._threads.start(work, begin + seconds)
        # Its threads end.
        self._clock.advance(seconds + 1.0)
        return self._table.throttled

    def _events(self) -> Iterator[dict[str, Any]]:
        for number in itertools.count():
            yield {"id": f"{self._rng.getrandbits(32):08x}{number:x}", "group": self._rng.randrange(self._groups)}

    def _arrive(self, begin: float, events: Iterator[dict[str, Any]]) -> None:
        due = int((self._clock() - begin + _TICK) * self._rate)
        self._waiting.extend(itertools.islice(events, due - self._offered))
        self._offered = due
        self._clock.call_at(self._clock() + _TICK, lambda: self._arrive(begin, events))

    def _write(self) -> None:
        """Accept what waits."""
        table = self._reached()
        while True:
            if not self._waiting:
                self._threads.sleep(_TICK / 4)
                continue
            events = [self._waiting.popleft() for _ in range(min(_PER_CALL, len(self._waiting)))]
            outcomes = accept_many(table, _EVENT, events)
            self._waiting.extend(event for event, one in zip(events, outcomes, strict=True) if one.status == "failed")

    def _server(self, shard: str) -> Callable[[], None]:
        """The function of a shard: gather a batch, wait for a free execution, and count it."""
        aggregator = Aggregator(self._reached(), (_RANKED,), quarantine_retention_seconds=86_400)

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
            waiting = len(self._table.stream.read(shard, self._mapping.checkpoint(shard), _BATCH).records)
            if waiting and since is None:
                since = self._clock()
            if since is not None and (waiting == _BATCH or self._clock() - since >= _GATHER):
                return
            self._threads.sleep(_TICK / 4)

    def _invoke(self, shard: str, aggregator: Aggregator) -> None:
        delivery = self._mapping.poll(shard)
        if delivery is None:
            return
        self._threads.sleep(INVOCATION)
        try:
            report = aggregator.handle(delivery.event, lambda: _TIMEOUT)
        except (ClientError, CommitError):
            self._mapping.fail(delivery)
            self.failed += 1
            return
        self._mapping.settle(delivery, {"state": report.state(delivery.event)})

    def _reached(self) -> Table:
        """The table as a process reaches it, in virtual time."""
        client, jitter = cast("Any", self._table), self._rng.random
        table = Table(self._table.name, client, clock=self._clock, sleep=self._threads.sleep, jitter=jitter)
        table.__dict__["pool"] = VirtualPool(self._threads, CONCURRENCY)
        return table
