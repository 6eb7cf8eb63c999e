"""A table that admits so many write units per second, and throttles the rest."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

from dynamodb_counters.testing._dynamodb.capacity import item_bytes, write_units
from dynamodb_counters.testing._dynamodb.client_errors import failure
from dynamodb_counters.testing._dynamodb.memory_client import MemoryTable
from simulation.queue.virtual_threads import VirtualThreads

_LATENCY: Final = 0.01
_CODES: Final = ("ThrottlingError", "ProvisionedThroughputExceeded")


class ThrottledTable(MemoryTable):
    """A table with a token bucket, filled for one second; what it throttles consumes nothing.

    For the first `outage` seconds it throttles everything.
    """

    def __init__(self, threads: VirtualThreads, units_per_second: float, seed: int, outage: float = 0) -> None:
        super().__init__(threads.clock, seed=seed)
        self._threads = threads
        self._rate = self._tokens = units_per_second
        self._filled_at = threads.clock()
        self._outage_ends = threads.clock() + outage
        self._rng = random.Random(seed)
        self.accepted_at = threads.clock()
        """When the last event was accepted."""

    def put_item(self, **request: Any) -> dict[str, Any]:
        self._threads.sleep(_LATENCY)
        if not self._take(request["Item"]):
            raise failure("PutItem", "ProvisionedThroughputExceededException")
        answer = super().put_item(**request)
        self.accepted_at = self._threads.clock()
        return answer

    def batch_execute_statement(self, *, Statements: list[dict[str, Any]], **_: Any) -> dict[str, Any]:  # noqa: N803
        self._require_few("BatchExecuteStatement", Statements=Statements)
        self._threads.sleep(_LATENCY * (0.5 + self._rng.random()))
        answers = [self._one(statement) for statement in Statements]
        if self._rng.random() < 0.1 and all("Error" in answer for answer in answers):
            raise failure("BatchExecuteStatement", "ThrottlingException")
        return {"Responses": answers}

    def _one(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        if not self._take({str(number): value for number, value in enumerate(statement["Parameters"])}):
            return {"Error": {"Code": self._rng.choice(_CODES), "Message": "throttled"}}
        answer = self._insert(statement)
        if "Error" not in answer:
            self.accepted_at = self._threads.clock()
        return answer

    def _take(self, item: Mapping[str, Any]) -> bool:
        now = self._threads.clock()
        self._tokens = min(self._rate, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        units = write_units(item_bytes(item))
        if self._tokens < units or now < self._outage_ends:
            return False
        self._tokens -= units
        return True
