"""The function under test: a sandbox with the real aggregator, behind a client that faults can be injected into."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from dynamodb_counters._stream.batch import Aggregator
from dynamodb_counters._table import Table
from simulation.delivery.event_source_mapping import Delivery
from simulation.faults.actors import Actor, DeferredPool
from simulation.faults.faulty_client import Fault, FaultyClient
from simulation.oracle.specs import Spec, declarations
from simulation.schedules.backend import Backend

TIMEOUT_SECONDS: Final = 60.0
QUARANTINE_SECONDS: Final = 14 * 86_400.0


class Invocation(Actor):
    """One invocation of the function; `timed_out` once the mapping has given up on it although it runs on."""

    def __init__(self, sandbox: Sandbox, delivery: Delivery) -> None:
        super().__init__(lambda: sandbox.handle(delivery))
        self.sandbox = sandbox
        self.delivery = delivery
        self.timed_out = False


class Sandbox:
    """An execution environment: the aggregator as one cold start makes it.

    `postpone` takes a request to be applied later; `rng` decides jitter, order and the skew of its clock.
    """

    def __init__(
        self,
        backend: Backend,
        specs: Sequence[Spec],
        postpone: Callable[[Callable[[], Any]], None],
        rng: random.Random,
    ) -> None:
        skew = rng.choice((0.0, 0.0, rng.uniform(-7200, 7200)))
        client: Any = FaultyClient(backend.client, self._pause, rng, postpone, self._lose_time)
        table = Table(
            backend.name, client, clock=lambda: backend.clock() + skew, sleep=self._lose_time, jitter=rng.random
        )
        table.__dict__["pool"] = DeferredPool(rng)
        self._aggregator = Aggregator(table, declarations(specs), quarantine_retention_seconds=QUARANTINE_SECONDS)
        self._time_left = TIMEOUT_SECONDS
        self.invocation: Invocation | None = None

    def handle(self, delivery: Delivery) -> dict[str, Any]:
        self._time_left = TIMEOUT_SECONDS
        self._aggregator.handle(delivery.event, lambda: self._time_left)
        return {"state": delivery.event.get("state") or {}}

    def _pause(self, operation: str) -> Fault:
        assert self.invocation is not None
        fault: Fault = self.invocation.pause(operation)
        return fault

    def _lose_time(self, seconds: float) -> None:
        self._time_left -= seconds
