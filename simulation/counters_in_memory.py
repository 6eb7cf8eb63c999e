"""Counters in memory on this project's own tables: with a seed, several shards, and faults between write and count."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from dynamodb_counters import testing
from dynamodb_counters._declarations import Declarable, Declaration, TableKeys
from dynamodb_counters._fold.records import table_of
from dynamodb_counters._items.schema import LEADERBOARD, PK, RANKING_INDEX, SCORE, SK
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import DAY, HOUR
from dynamodb_counters.testing import START, checked
from simulation.memory import request_checks
from simulation.memory.memory_client import MemoryDynamoDB, paginator
from simulation.memory.memory_stream import Record
from simulation.world import World

_SHARDS: Final = 3  # Shards of a stream with faults; one without has a single shard.

_LATEST_EXPIRY: Final = 2 * DAY
"""https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html"""

_WRITES: Final = {"put_item", "update_item", "delete_item", "transact_write_items", "batch_execute_statement"}

_MOST_RECORDS: Final = 10_000

_MOST_CRASHES: Final = 3  # Most crashes of the invocations of one batch, so that it is counted in the end.

_MOST_CALLS: Final = 6
"""A crash comes no later than at this call of an invocation."""

_REPLAYED: Final = 20
"""Records before a batch that may be delivered again with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Faults that DynamoDB Streams and Lambda may inflict on the aggregator; the counts must stay exact.

    Each is a probability from 0 to 1: that an invocation dies before or after a call, and its batch is delivered again
    to a new process; that a batch is delivered again although it was counted; that an item is deleted up to two days
    after it has expired; that a shard is replaced after a write. With any of them, shards are read in random order, and
    batches are cut at random places.
    """

    crash: float = 0.0
    redeliver: float = 0.0
    late_expiry: float = 0.0
    split: float = 0.0

    def __bool__(self) -> bool:
        return any(astuple(self))


class Counting(World):
    """Delivers the records of all tables to the aggregator, in order by shard, with faults."""

    def __init__(
        self,
        memory: MemoryDynamoDB,
        declarations: tuple[Declaration, ...],
        clock: Callable[[], float],
        rng: random.Random,
        faults: Faults,
    ) -> None:
        self._random, self._faults = rng, faults
        # Without a source table, whose items may be older, all names are complete.
        super().__init__(*declarations, table=memory, clock=clock)
        if len(self.streams) > 1:
            self.source_table = table_of(self.streams[-1].arn)
            self.aggregator = self.process()
            self.aggregator.handle({})

    def reached(self, client: Any = None, skew: float = 0.0, sleep: Callable[[float], None] | None = None) -> Table:
        client, sleep = client or self.table, sleep or (lambda _: None)
        return Table(self.name, client, clock=lambda: self.clock() + skew, sleep=sleep, threads=1)

    def catch_up(self) -> None:
        if self._faults.split and self._random.random() < self._faults.split:
            stream = self._random.choice(self.streams)
            stream.split(self._random.choice(stream.open_shards()), self._random.choice((1, 2)))
        while any(self._count_next(shard, records) for shard, records in self._next()):
            pass

    def _next(self) -> list[tuple[str, list[Record]]]:
        """Return what is new by shard, parents before children, as Lambda has it."""
        new = self.new()
        shards = [shard for stream in self.streams for shard in stream.shards() if shard.is_open or new[shard.id]]
        ids = {shard.id for shard in shards}
        free = [shard.id for shard in shards if shard.parent not in ids]
        if self._faults:
            self._random.shuffle(free)
        return [(shard, new[shard]) for shard in free]

    def _count_next(self, shard: str, new: list[Record]) -> bool:
        most = self._random.choice((1, 2, 5, _MOST_RECORDS)) if self._faults else _MOST_RECORDS
        if not (records := new[:most]):
            return False
        self._count(shard, records)
        self._delivered[shard] = self._delivered.get(shard, 0) + len(records)
        if self._faults.redeliver and self._random.random() < self._faults.redeliver:
            self._count(shard, self._once_more(shard, records))
        return True

    def _once_more(self, shard: str, records: list[Record]) -> list[Record]:
        past = self.records(shard)[: self._delivered[shard]]
        # A batch that Lambda delivers again is young: a batch that is counted is repeated within minutes.
        young = [record for record in past if record["dynamodb"]["ApproximateCreationDateTime"] > self.clock() - HOUR]
        return young[-len(records) - self._random.randrange(_REPLAYED) :] or records

    def _count(self, shard: str, records: list[Record]) -> None:
        for _ in range(_MOST_CRASHES):
            if self._random.random() >= self._faults.crash:
                break
            try:
                is_dead = self.kill(
                    records, self._random.randrange(_MOST_CALLS), shard, after=self._random.random() < 0.5
                )
            except TimeoutError:
                is_dead = True
            if is_dead:
                self.aggregator = self.process()
        try:
            self.deliver(records, shard)
        except TimeoutError:
            # It waits for invocations that have crashed, as it would in Lambda: none lasts for an hour.
            self.deliver(records, shard, self.process(skew=HOUR))


class CountersInMemory(testing.CountersInMemory):
    """`Counters` on tables in memory; the seed decides shards, sequence numbers and faults."""

    def __init__(self, declarations: tuple[Declaration, ...], now: datetime, seed: int, faults: Faults) -> None:
        self._rng, self._faults = random.Random(seed), faults
        super().__init__(declarations, now)

    @property
    def table(self) -> OwnItems:
        return OwnItems(self.client, self._tables[-1].name)

    def _open(self, keys: TableKeys | None) -> tuple[Any, Sequence[Any]]:
        shards = _SHARDS if self._faults else 1
        memory = self._memory = MemoryDynamoDB(self.clock)
        counted = memory.create("counters", PK, SK, seed=self._rng.getrandbits(32), shards=shards)
        counted.indexes[RANKING_INDEX] = (LEADERBOARD, SCORE)
        if keys is not None:
            names = [name for name in (keys.partition_key, keys.sort_key) if name is not None]
            memory.create("source", *names, seed=self._rng.getrandbits(32), shards=shards, ttl=keys.ttl or "")
        tables = list(memory.tables.values())
        if self._faults.late_expiry:
            for table in tables:
                table.late = partial(_lateness, self._rng.getrandbits(32), self._faults.late_expiry)
        return _CountedClient(memory, self), tables

    def _start(self, declarations: tuple[Declaration, ...]) -> None:
        self._counting = Counting(self._memory, declarations, self.clock, self._rng, self._faults)

    def _catch_up(self) -> None:
        self._counting.catch_up()


class _CountedClient:
    """A client; what it writes is counted before the call returns, also if it fails."""

    def __init__(self, memory: MemoryDynamoDB, counters: CountersInMemory) -> None:
        self._memory, self._counters = memory, counters
        self.exceptions, self.meta = memory.exceptions, memory.meta

    def __getattr__(self, name: str) -> Any:
        if name not in request_checks.operations():
            raise AttributeError(f"a client of DynamoDB has no {name!r}")

        def checked(**request: Any) -> Any:
            request_checks.check(request_checks.operations()[name], request)
            call = getattr(self._memory, name)
            if name not in _WRITES:
                return call(**request)
            with self._counters._lock:
                answer = call(**request)
                self._counters._catch_up()
                return answer

        return checked

    def get_paginator(self, operation: str) -> Any:
        if operation not in ("query", "scan"):
            raise NotImplementedError(f"a paginator of {operation} is not known in memory")
        return paginator(getattr(self, operation))


@contextmanager
def counters_in_memory(
    declarations: Iterable[Declarable],
    *,
    now: datetime = START,
    seed: int = 0,
    faults: Faults | None = None,
    quarantine: Literal["raise", "keep"] = "raise",
) -> Iterator[CountersInMemory]:
    """As that of `dynamodb_counters.testing`, without threads; the same `seed` gives the same run."""
    counters = CountersInMemory(checked(declarations, quarantine), now, seed, faults or Faults())
    yield counters
    if quarantine == "raise":
        counters.require_all_counted()


def _lateness(seed: int, probability: float, item: dict[str, Any]) -> float:
    """Return how long after it has expired an item is deleted: the same each time it is asked."""
    rng = random.Random(f"{seed} {sorted(item.items(), key=str)}")
    return rng.uniform(0, _LATEST_EXPIRY) if rng.random() < probability else 0.0


class OwnItems:
    """The table of a user's own items, ``counters.table``: as much of boto3's ``Table`` as is about single items.

    Expressions are text, items and values plain. Changes are counted when a call returns.
    """

    def __init__(self, client: Any, name: str) -> None:
        self._client, self.name = client, name

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._client, method)
        typed, plain = TypeSerializer().serialize, TypeDeserializer().deserialize

        def send(**request: Any) -> dict[str, Any]:
            inputs = {name: request[name] for name in ("Item", "Key", "ExpressionAttributeValues") if name in request}
            changes: dict[str, Any] = {
                name: {key: typed(value) for key, value in values.items()} for name, values in inputs.items()
            }
            answer: dict[str, Any] = call(TableName=self.name, **{**request, **changes})
            items: dict[str, Any] = {name: answer[name] for name in ("Item", "Attributes") if name in answer}
            return answer | {name: {key: plain(value) for key, value in item.items()} for name, item in items.items()}

        return send
