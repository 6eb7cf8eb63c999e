"""A table that admits so many units per second: a token bucket for the table, and for each partition key and item."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._items.schema import LEADERBOARD, SCORE
from dynamodb_counters._table import Table
from simulation.faults.hooked_client import PagedClient
from simulation.memory.client_errors import failure
from simulation.memory.memory_partitions import Attempt, Key
from simulation.memory.typed_values import Item
from simulation.memory_table import MemoryTable
from simulation.queue.virtual_threads import VirtualThreads

_RANKED: Final = (LEADERBOARD, SCORE)
_ROUND_TRIP: Final = 0.01


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
        """Return whether so many are there; a request for more than it can hold waits until it is full."""
        if math.isinf(self.rate):
            return True
        self.tokens = min(self.rate, self.tokens + (now - self.filled_at) * self.rate)
        self.filled_at = now
        return self.tokens >= min(units, self.rate)


class _ThrottledError(Exception):
    """A request that is refused as a whole; it consumes nothing."""


class ThrottledTable(MemoryTable):
    """A table with throttles, which throttles all writes for the first `outage` seconds."""

    def __init__(
        self, threads: VirtualThreads, limits: Limits, seed: int = 0, outage: float = 0, *, shards: int = 1
    ) -> None:
        super().__init__(threads.clock, seed=seed, shards=shards)
        self._threads, self._limits, self._rng = threads, limits, random.Random(seed)
        self._buckets: dict[Hashable, _Bucket] = {}
        self._outage_ends = threads.clock() + outage
        self.throttled = 0
        """Requests refused."""
        self.accepted_at = threads.clock()
        """When the last event was accepted."""

    def _execute(self, operation: str, writes: list[tuple[str, dict[str, Any]]]) -> list[Attempt]:
        try:
            return super()._execute(operation, writes)
        except _ThrottledError:
            self.throttled += 1
            raise failure(operation, "ProvisionedThroughputExceededException") from None

    def _admit(self, tried: Sequence[tuple[Key, Attempt, float]]) -> None:
        limits, now = self._limits, self._threads.clock()
        demands = [(self._bucket("table", limits.table_writes), sum(units for _, _, units in tried))]
        for key, done, units in tried:
            demands += [(self._bucket(name, limits.writes), units) for name in (key[1], (key[1], key[-1]))]
            if moved := index_write_units(done.old, done.new, _RANKED):
                index = "index", (done.new or done.old or {})[LEADERBOARD]["S"]
                demands.append((self._bucket(index, limits.index_writes), moved))
        if now < self._outage_ends or not all(bucket.holds(units, now) for bucket, units in demands):
            raise _ThrottledError
        for bucket, units in demands:
            bucket.tokens -= units
        super()._admit(tried)

    def _bucket(self, name: Hashable, rate: float) -> _Bucket:
        return self._buckets.setdefault(name, _Bucket(rate, rate, self._threads.clock()))

    def _send(self, name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        self._threads.sleep(_ROUND_TRIP * (0.9 + 0.2 * self._rng.random()))
        answer = send()
        if name == "put_item":
            self.accepted_at = self._threads.clock()
        return answer

    def reached(self, jitter: Callable[[], float]) -> Table:
        """Return the table as a process reaches it, in virtual time."""
        client: Any = PagedClient(self, self._send)
        pool: Any = self._threads
        return Table(self.name, client, self._threads.clock, self._threads.sleep, jitter, pool=pool)


def index_write_units(old: Item | None, new: Item | None, keys: tuple[str, str]) -> float:
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
