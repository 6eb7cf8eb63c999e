"""A client of one table in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from simulation.memory.memory_client import MemoryDynamoDB
from simulation.memory.typed_values import Item


class MemoryTable(MemoryDynamoDB):
    """A client with one table; `indexes` has the partition and sort key of each index by name."""

    def __init__(
        self,
        clock: Callable[[], float],
        seed: int = 0,
        shards: int = 1,
        name: str = "counters",
        *,
        indexes: Mapping[str, tuple[str, str]] | None = None,
        keys: tuple[str, ...] = ("pk", "sk"),
        ttl: str = "ttl",
    ) -> None:
        super().__init__(clock)
        self.name = name
        self._only = self.create(name, *keys, seed=seed, shards=shards, ttl=ttl)
        self._only.indexes |= indexes or {}
        self.stream = self._only.stream

    def items(self) -> Iterator[Item]:
        return self._only.items()

    def expire(self, limit: int | None = None) -> list[Item]:
        """Delete (up to `limit`) items whose TTL is over, as DynamoDB does in the background; return them."""
        with self._lock:
            return self._only.expire(self._clock(), limit)
