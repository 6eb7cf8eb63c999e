"""Counters in memory on this project's own tables: with a seed, several shards, and faults between write and count."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from dynamodb_counters import testing
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations import Declarable, Declaration, TableKeys
from dynamodb_counters._fold.records import table_of
from dynamodb_counters._items.table_schema import LEADERBOARD, PK, RANKING_INDEX, SCORE, SK
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import DAY, HOUR
from dynamodb_counters.errors import InvalidArgumentError
from dynamodb_counters.testing import START, checked
from simulation.memory import request_checks
from simulation.memory.memory_client import MemoryDynamoDB, paginator
from simulation.memory.memory_stream import MemoryStream, Record

_SHARDS: Final = 3
"""Shards of a stream with faults; one without has a single shard."""

_LATEST_EXPIRY: Final = 2 * DAY
"""https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html"""

_WRITES: Final = {"put_item", "update_item", "delete_item", "transact_write_items", "batch_execute_statement"}

_MOST_RECORDS: Final = 10_000

_MOST_CRASHES: Final = 3
"""Most crashes of the invocations of one batch, so that it is counted in the end."""

_MOST_CALLS: Final = 6
"""A crash comes no later than at this call of an invocation."""

_REPLAYED: Final = 20
"""Records before a batch that may be delivered again with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Faults that DynamoDB Streams and Lambda may inflict on the aggregator; the counts must stay exact.

    Each is a probability from 0 to 1; the seed of `counters_in_memory` decides. With any of them, shards are read in
    random order and batches are cut at random places.

    Parameters
    ----------
    crash : float, optional
        Probability that an invocation dies before or after one of its calls, with some of its writes done; its
        batch is delivered again, to a new process. Default 0.
    redeliver : float, optional
        Probability that a batch is delivered again although it was counted, with some records before it. Default 0.
    late_expiry : float, optional
        Probability that DynamoDB deletes an expired item only some time within the next two days. Default 0.
    split : float, optional
        Probability that a shard of the stream is replaced by one or two others after a write. Default 0.

    Examples
    --------
    >>> Faults(crash=0.3, redeliver=0.3).split
    0.0
    """

    crash: float = 0.0
    redeliver: float = 0.0
    late_expiry: float = 0.0
    split: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float) or not 0 <= value <= 1:
                raise InvalidArgumentError(field.name, value, "a probability from 0 to 1")

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


class CrashedError(BaseException):
    """Ends an invocation as the death of its process would: nothing in the runtime catches it."""


class Counting:
    """Delivers the records of streams to the aggregator, in order by shard, with faults."""

    def __init__(
        self,
        memory: MemoryDynamoDB,
        declarations: tuple[Declaration, ...],
        clock: Callable[[], float],
        rng: random.Random,
        faults: Faults,
    ) -> None:
        self._memory, self._declarations, self._clock = memory, declarations, clock
        self._random, self._faults = rng, faults
        self._streams = [table.stream for table in memory.tables.values()]
        self._source_table: str | None = None
        self._counted: dict[tuple[str, str], str | None] = {}
        self._name, *_ = memory.tables
        # Without a source table, whose items may be older, all names are complete.
        self._cold_start().handle({})
        self._source_table = table_of(self._streams[-1].arn) if len(self._streams) > 1 else None
        self._aggregator = self._cold_start()
        self._aggregator.handle({})

    def catch_up(self) -> None:
        if self._faults.split and self._random.random() < self._faults.split:
            stream = self._random.choice(self._streams)
            stream.split(self._random.choice(stream.open_shards()), self._random.choice((1, 2)))
        while any(self._count_next(stream, shard) for stream, shard in self._shards()):
            pass

    def _shards(self) -> Iterable[tuple[MemoryStream, str]]:
        """Parents come before children, as Lambda has it."""
        for stream in self._streams:
            left = {shard.id: shard.parent for shard in stream.shards() if not self._is_ended(stream, shard.id)}
            free = [shard for shard, parent in left.items() if parent not in left]
            if self._faults:
                self._random.shuffle(free)
            yield from ((stream, shard) for shard in free)

    def _is_ended(self, stream: MemoryStream, shard: str) -> bool:
        page = stream.read(shard, self._counted.get((stream.arn, shard)), 1)
        return page.ended and not page.records

    def _count_next(self, stream: MemoryStream, shard: str) -> bool:
        place = stream.arn, shard
        most = self._random.choice((1, 2, 5, _MOST_RECORDS)) if self._faults else _MOST_RECORDS
        records = stream.read(shard, self._counted.get(place), most).records
        if not records:
            return False
        self._deliver(shard, records)
        self._counted[place] = records[-1]["dynamodb"]["SequenceNumber"]
        if self._faults.redeliver and self._random.random() < self._faults.redeliver:
            self._deliver(shard, self._once_more(stream, shard, records))
        return True

    def _once_more(self, stream: MemoryStream, shard: str, records: list[Record]) -> list[Record]:
        known = stream.read(shard, None, 10**9).records
        known = known[: known.index(records[-1]) + 1]
        # A batch that Lambda delivers again is young: a batch that is counted is repeated within minutes.
        young = [one for one in known if one["dynamodb"]["ApproximateCreationDateTime"] > self._clock() - HOUR]
        return young[-len(records) - self._random.randrange(_REPLAYED) :] or records

    def _deliver(self, shard: str, records: list[Record]) -> None:
        event = {"shardId": shard, "Records": records}
        for _ in range(_MOST_CRASHES):
            if self._random.random() >= self._faults.crash:
                break
            doomed = _Mortal(self._memory, self._random.randint(1, _MOST_CALLS), after=self._random.random() < 0.5)
            try:
                self._cold_start(doomed).handle(event)
            except (CrashedError, TimeoutError):
                self._aggregator = self._cold_start()
        try:
            self._aggregator.handle(event)
        except TimeoutError:
            # It waits for invocations that have crashed, as it would in Lambda: none lasts for an hour.
            self._cold_start(waited=HOUR).handle(event)

    def _cold_start(self, client: Any = None, *, waited: float = 0.0) -> Aggregator:
        reached: Any = client or self._memory
        return Aggregator(
            Table(self._name, reached, clock=lambda: self._clock() + waited, sleep=lambda _: None, threads=1),
            self._declarations,
            quarantine_retention_seconds=14 * DAY,
            source_table=self._source_table,
        )


class _Mortal:
    def __init__(self, memory: MemoryDynamoDB, calls: int, *, after: bool) -> None:
        self._memory, self._left, self._after = memory, calls, after
        self.exceptions, self.meta = memory.exceptions, memory.meta

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._memory, name)

        def called(*arguments: Any, **request: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise CrashedError
            answer = call(*arguments, **request)
            if self._left == 0:
                raise CrashedError
            return answer

        return called


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
    """How long after it has expired an item is deleted: the same each time it is asked."""
    rng = random.Random(f"{seed} {sorted(item.items(), key=str)}")
    return rng.uniform(0, _LATEST_EXPIRY) if rng.random() < probability else 0.0


class OwnItems:
    """The table of a user's own items; ``counters.table`` is one.

    The methods of boto3's ``Table`` that change single items, with expressions as text. Their changes are counted
    when they return.
    """

    def __init__(self, client: Any, name: str) -> None:
        self._client, self.name = client, name

    def put_item(self, **request: Any) -> dict[str, Any]:
        """Call PutItem; ``Item`` and expression values are plain values."""
        return self._call("put_item", request)

    def update_item(self, **request: Any) -> dict[str, Any]:
        """Call UpdateItem; ``Key`` and expression values are plain values."""
        return self._call("update_item", request)

    def delete_item(self, **request: Any) -> dict[str, Any]:
        """Call DeleteItem; ``Key`` and expression values are plain values."""
        return self._call("delete_item", request)

    def get_item(self, **request: Any) -> dict[str, Any]:
        """Call GetItem; ``Key`` and the returned ``Item`` are plain values."""
        return self._call("get_item", request)

    def _call(self, method: str, request: Mapping[str, Any]) -> dict[str, Any]:
        typed, plain = TypeSerializer().serialize, TypeDeserializer().deserialize
        asked = {name: request[name] for name in ("Item", "Key", "ExpressionAttributeValues") if name in request}
        sent = {name: {each: typed(value) for each, value in values.items()} for name, values in asked.items()}
        answer: dict[str, Any] = getattr(self._client, method)(TableName=self.name, **{**request, **sent})
        items = {name: answer[name] for name in ("Item", "Attributes") if name in answer}
        return answer | {name: {each: plain(value) for each, value in one.items()} for name, one in items.items()}
