"""A table that admits so many units per second: a token bucket for the table, and for each partition key and item."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from dynamodb_counters._items.table_schema import LEADERBOARD, SCORE
from dynamodb_counters._table import CONCURRENCY, Table
from simulation.memory.client_errors import failure
from simulation.memory.memory_partitions import Attempt, Key
from simulation.memory_table import MemoryTable
from simulation.queue.virtual_threads import VirtualPool, VirtualThreads

_RANKED: Final = (LEADERBOARD, SCORE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Units per second, by default without limits; `writes` are those of a partition key, and of an item."""

    table_writes: float = math.inf
    writes: float = math.inf
    index_writes: float = math.inf


@dataclass(slots=True)
class _Bucket:
    """Tokens, filled for one second at most: DynamoDB may save more, and does not promise any."""

    rate: float
    tokens: float
    filled_at: float

    def holds(self, units: float, now: float) -> bool:
        """Whether so many are there; a request for more than it can hold waits until it is full."""
        if math.isinf(self.rate):
            return True
        self.tokens = min(self.rate, self.tokens + (now - self.filled_at) * self.rate)
        self.filled_at = now
        return self.tokens >= min(units, self.rate)


class _ThrottledError(Exception):
    """A request that is refused as a whole; it consumes nothing."""


class ThrottledTable(MemoryTable):
    """A table with throttles, whose requests take a round trip of about `latency`.

    For the first `outage` seconds it throttles all writes.
    """

    def __init__(
        self,
        threads: VirtualThreads,
        limits: Limits,
        seed: int = 0,
        outage: float = 0,
        *,
        shards: int = 1,
        latency: float = 0.01,
    ) -> None:
        super().__init__(threads.clock, seed=seed, shards=shards)
        self._threads, self._latency = threads, latency
        self._limits = limits
        self._buckets: dict[Hashable, _Bucket] = {}
        self._outage_ends = threads.clock() + outage
        self._rng = random.Random(seed)
        self.throttled = 0
        """Requests refused."""
        self.accepted_at = threads.clock()
        """When the last event was accepted."""

    def get_item(self, **request: Any) -> dict[str, Any]:
        self._threads.sleep(self._round_trip())
        return super().get_item(**request)

    def query(self, **request: Any) -> dict[str, Any]:
        self._threads.sleep(self._round_trip())
        return super().query(**request)

    def batch_get_item(self, **request: Any) -> dict[str, Any]:
        self._threads.sleep(self._round_trip())
        return super().batch_get_item(**request)

    def transact_write_items(self, **request: Any) -> dict[str, Any]:
        self._threads.sleep(self._round_trip())
        return super().transact_write_items(**request)

    def batch_execute_statement(self, **request: Any) -> dict[str, Any]:
        self._threads.sleep(self._round_trip())
        return super().batch_execute_statement(**request)

    def _single(self, operation: str, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        self._threads.sleep(self._round_trip())
        answer = super()._single(operation, kind, request)
        if kind == "Put":
            self.accepted_at = self._threads.clock()
        return answer

    def _execute(self, operation: str, writes: list[tuple[str, dict[str, Any]]]) -> list[Attempt]:
        try:
            return super()._execute(operation, writes)
        except _ThrottledError:
            self.throttled += 1
            raise failure(operation, "ProvisionedThroughputExceededException") from None

    def _admit(self, tried: Sequence[tuple[Key, Attempt, float]]) -> None:
        limits, now = self._limits, self._threads.clock()
        wanted = [(self._bucket("table", limits.table_writes), sum(units for _, _, units in tried))]
        for key, done, units in tried:
            wanted += [(self._bucket(name, limits.writes), units) for name in (key[1], (key[1], key[-1]))]
            if moved := index_write_units(done.old, done.new, _RANKED):
                index = "index", (done.new or done.old or {})[LEADERBOARD]["S"]
                wanted.append((self._bucket(index, limits.index_writes), moved))
        if now < self._outage_ends or not all(bucket.holds(units, now) for bucket, units in wanted):
            raise _ThrottledError
        for bucket, units in wanted:
            bucket.tokens -= units
        super()._admit(tried)

    def _bucket(self, name: Hashable, rate: float) -> _Bucket:
        return self._buckets.setdefault(name, _Bucket(rate, rate, self._threads.clock()))

    def _round_trip(self) -> float:
        return self._latency * (0.9 + 0.2 * self._rng.random())

    def reached(self, jitter: Callable[[], float]) -> Table:
        """Return the table as a process reaches it, in virtual time."""
        table = Table(self.name, cast("Any", self), clock=self._threads.clock, sleep=self._threads.sleep, jitter=jitter)
        table.__dict__["pool"] = VirtualPool(self._threads, CONCURRENCY)
        return table


def index_write_units(
    old: Mapping[str, Mapping[str, Any]] | None, new: Mapping[str, Mapping[str, Any]] | None, keys: tuple[str, str]
) -> float:
    """Units a write adds on an index of keys only: an entry is put, deleted, or (its key changed) both.

    >>> index_write_units(None, {"b": {"S": "all"}, "s": {"N": "1"}}, ("b", "s"))
    1.0
    >>> index_write_units({"b": {"S": "all"}, "s": {"N": "1"}}, {"b": {"S": "all"}, "s": {"N": "2"}}, ("b", "s"))
    2.0
    >>> index_write_units({"b": {"S": "all"}, "s": {"N": "1"}}, {"b": {"S": "all"}, "s": {"N": "1"}}, ("b", "s"))
    0.0
    >>> index_write_units({"b": {"S": "all"}, "s": {"N": "1"}}, None, ("b", "s"))
    1.0
    """
    before, after = (tuple(item[key] for key in keys if key in item) if item else () for item in (old, new))
    return 0.0 if before == after else float((len(before) == len(keys)) + (len(after) == len(keys)))
