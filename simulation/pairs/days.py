"""A schedule of days: writes, deliveries and time take turns, as a seed says."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Final

from dynamodb_counters._timeline.tiers import DAY, HOUR
from simulation.delivery.event_source_mapping import Settings
from simulation.faults.faulty_client import FaultPlan
from simulation.pairs.backend import MakeBackend
from simulation.pairs.coverage import Outcome
from simulation.pairs.deliveries import Deliveries
from simulation.pairs.function import Function

_MOST_STEPS: Final = 100_000


class Days:
    """One schedule; its seed decides everything. All but its loop is of a kind."""

    steps: ClassVar[int] = 80
    backlog: ClassVar[float] = 22 * HOUR
    """Of what waits longer, Lambda gives up on some."""

    def __init__(self, seed: int, make_backend: MakeBackend) -> None:
        self._seed = seed
        self._random = rng = random.Random(seed)
        self._backend = make_backend(rng)
        self._clock = self._backend.clock
        self._faults = FaultPlan(rng, rng.choice((0.0, 0.03, 0.1)), 200)

    def _begin(self, function: Function, settings: Settings) -> None:
        self._function, self._reached = function, function.reached
        self._deliveries = Deliveries(self._backend, self._random, self._faults, function, settings)

    def run(self) -> Outcome:
        for _ in range(self.steps):
            self._random.choice((self._write, self._write, self._write, self._count, self._count, self._pass))()
        self._faults.budget = 0
        self._settle()
        mapping, wrong = self._deliveries.mapping, [*self._wrong(), *self._function.standstills]
        reached: Counter[str] = self._reached
        return Outcome(self._seed, wrong, mapping.deliveries, mapping.delivered, self._faults.injected, reached)

    def _write(self) -> None:
        raise NotImplementedError

    def _wrong(self) -> Iterable[str]:
        raise NotImplementedError

    def _trouble(self) -> Sequence[Callable[[], object]]:
        return self._deliveries.disturbances()

    def _pass(self) -> None:
        """Let time pass, but only as much as the records that wait have left."""
        left = self._deliveries.oldest_waiting() + self.backlog - self._clock()
        self._clock.advance(max(0.0, min(self._random.choice((60, HOUR, 5 * HOUR, 14 * HOUR, DAY)), left)))

    def _count(self) -> None:
        """Deliver for a while, with all that goes wrong."""
        for _ in range(self._random.choice((10, 40, 160))):
            chance = self._random.random()
            if chance < 0.2:
                self._deliveries.start()
            elif chance < 0.25:
                self._random.choice(self._trouble())()
            elif chance < 0.27:
                self._clock.hurry(self._random)
            else:
                self._step()

    def _step(self) -> None:
        self._deliveries.step()

    def _settle(self) -> None:
        """Count all there is."""
        for _ in range(_MOST_STEPS):
            self._step()
            if not self._function.running and not self._clock.hurry(self._random) and self._deliveries.drained():
                return
        raise AssertionError(f"seed {self._seed} does not end")
