"""The runner of a backfill as an actor: killed at any request or step, left behind, doubled, resumed."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Any, Final

from dynamodb_counters._backfill.backfill import Backfill
from dynamodb_counters._backfill.shards import DescribeShards
from dynamodb_counters._backfill.state import Progress
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._table import Table
from simulation.faults.actors import Actor
from simulation.faults.disorder import in_disorder
from simulation.faults.faulty_client import Fault, FaultPlan, FaultyClient
from simulation.schedules.backend import Backend

_STEP: Final = "step"
_SLEEP: Final = "sleep"
_LANDING_SECONDS: Final = 50.0
"""A request that is heard of lands at most this long after it was sent; the protocol allows a minute."""


class _OneThread:
    """Stands for the table's threads, between which no actor can switch."""

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [work(item) for item in items]


class BackfillActor:
    """One process that runs a backfill, step by step."""

    def __init__(
        self,
        backend: Backend,
        shards: DescribeShards,
        rng: random.Random,
        *,
        names: Collection[str] = (),
        run: str = "",
        kind: type[Backfill | Verification] = Backfill,
    ) -> None:
        self._backend = backend
        self._random = rng
        self.run = run
        self.names = names
        self.phase = ""
        self.wakes_at = 0.0
        self.skew = rng.choice((0.0, rng.uniform(-50, 50)))
        client: Any = FaultyClient(backend.client, self._pause, rng, self._postpone, backend.clock.advance)
        clock = backend.clock
        table = Table(backend.name, client, clock=lambda: clock() + self.skew, sleep=self._sleep, jitter=rng.random)
        table.__dict__["side_by_side"] = in_disorder(rng)
        table.__dict__["pool"] = _OneThread()
        self.work = kind(
            table=table,
            shards=shards,
            now=lambda: float(int(clock())),
            names=names,
            run=run,
            segments=rng.randint(1, 4),
            units_per_second=rng.choice((None, None, 5.0, 50.0)),
            page_items=rng.choice((1, 2, 5)),
        )
        self.actor = Actor(self._go)

    @property
    def done(self) -> bool:
        return self.actor.done

    @property
    def error(self) -> BaseException | None:
        return self.actor.error

    @property
    def is_asleep(self) -> bool:
        return self._backend.clock() < self.wakes_at

    def step(self, faults: FaultPlan | None) -> None:
        """Go on to the next request, or the next step."""
        waiting = self.actor.waiting
        calm = faults is None or waiting in (None, _STEP, _SLEEP)
        self.actor.step(Fault.NONE if calm or faults is None else faults.draw(str(waiting)))

    def _go(self) -> None:
        for progress in self.work.steps():
            self._told(progress)
            self.actor.pause(_STEP)

    def _told(self, progress: Progress) -> None:
        self.run, self.phase = progress.run, progress.phase

    def _pause(self, operation: str) -> Fault:
        fault: Fault = self.actor.pause(operation)
        return fault

    def _sleep(self, seconds: float) -> None:
        self.wakes_at = self._backend.clock() + seconds
        self.actor.pause(_SLEEP)

    def _postpone(self, send: Callable[[], Any]) -> None:
        def land() -> None:
            with suppress(Exception):
                send()

        clock = self._backend.clock
        clock.call_at(
            clock.now + self._random.choice((self._random.uniform(0, _LANDING_SECONDS), _LANDING_SECONDS)), land
        )
