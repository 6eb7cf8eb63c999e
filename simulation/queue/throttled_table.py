"""A table that admits so many units per second, and throttles the rest."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from dynamodb_counters._items.table_schema import LEADERBOARD, PK, SCORE
from simulation.memory.client_errors import failure
from simulation.memory.memory_partitions import Attempt, Key
from simulation.metered_table import MeteredTable, index_write_units
from simulation.queue.throttles import Limits, Throttles
from simulation.queue.virtual_threads import VirtualThreads

_RANKED: Final = (LEADERBOARD, SCORE)


class _ThrottledError(Exception):
    """A request that is refused as a whole; it consumes nothing."""


class ThrottledTable(MeteredTable):
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
        self._throttles = Throttles(limits, threads.clock)
        self._outage_ends = threads.clock() + outage
        self._rng = random.Random(seed)
        self.throttled = 0
        """Requests refused."""
        self.accepted_at = threads.clock()
        """When the last event was accepted."""

    def get_item(self, **request: Any) -> dict[str, Any]:
        return self._read("GetItem", request["Key"][PK]["S"], lambda: super(ThrottledTable, self).get_item(**request))

    def query(self, **request: Any) -> dict[str, Any]:
        pk = str(request["ExpressionAttributeValues"].get(":pk"))
        return self._read("Query", pk, lambda: super(ThrottledTable, self).query(**request))

    def batch_get_item(self, **request: Any) -> dict[str, Any]:
        self._threads.sleep(self._round_trip())
        return super().batch_get_item(**request)

    def transact_write_items(self, **request: Any) -> dict[str, Any]:
        send = super().transact_write_items
        return self._write("TransactWriteItems", lambda: send(**request))

    def _single(self, operation: str, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        send = super()._single
        answer = self._write(operation, lambda: send(operation, kind, request))
        if kind == "Put":
            self.accepted_at = self._threads.clock()
        return answer

    def _read(self, operation: str, pk: str, send: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        self._threads.sleep(self._round_trip())
        before = self.usage.reads
        answer = send()
        if not self._throttles.take_reads(pk, self.usage.reads - before):
            self.usage.reads = before
            self.throttled += 1
            raise failure(operation, "ProvisionedThroughputExceededException")
        return answer

    def _write(self, operation: str, send: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        self._threads.sleep(self._round_trip())
        try:
            return send()
        except _ThrottledError:
            self.throttled += 1
            raise failure(operation, "ProvisionedThroughputExceededException") from None

    def _admit(self, tried: Sequence[tuple[Key, Attempt, float]]) -> None:
        writes = [(key[1], key[-1], units) for key, _, units in tried]
        moves = [
            ((done.new or done.old or {})[LEADERBOARD]["S"], units)
            for _, done, _ in tried
            if (units := index_write_units(done.old, done.new, _RANKED))
        ]
        if self._threads.clock() < self._outage_ends or not self._throttles.take(writes, moves):
            raise _ThrottledError
        super()._admit(tried)

    def _round_trip(self) -> float:
        return self._latency * (0.9 + 0.2 * self._rng.random())
