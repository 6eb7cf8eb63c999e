"""One schedule: writers, deliveries and faults interleaved by a seed, then the counts compared with the truth."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from dynamodb_counters._stream.redrive import list_quarantined, redrive
from dynamodb_counters._table import Table
from simulation.delivery.event_source_mapping import Delivery, EventSourceMapping, Settings
from simulation.faults.actors import Crashed
from simulation.faults.faulty_client import FaultPlan
from simulation.oracle.specs import SPECS, repaired
from simulation.oracle.truth import Counts, actual, differences, expected, expected_so_far
from simulation.schedules.backend import MakeBackend, MemoryBackend
from simulation.schedules.sandbox import Invocation, Sandbox
from simulation.schedules.writers import Writers

# A run takes some hundred; one that takes this many goes round in circles.
_MOST_STEPS: Final = 200_000


@dataclass(slots=True)
class Outcome:
    """What a schedule came to: counts that are not exact, invocations, records delivered, faults by kind."""

    seed: int
    wrong: list[str]
    deliveries: int
    records: int
    faults: Counter[str] = field(default_factory=Counter)


class WrongCountError(AssertionError):
    """A schedule ended with wrong counts; the message says how to run it again."""

    def __init__(self, outcome: Outcome, engine: str) -> None:
        lines = "\n  ".join(outcome.wrong)
        again = f"python -m simulation.soak --engine {engine} --seed {outcome.seed} --schedules 1"
        super().__init__(f"seed {outcome.seed}: {len(outcome.wrong)} wrong\n  {lines}\nrun it again: {again}")


class Schedule:
    """A run of the whole system, step by step decided by a seed."""

    def __init__(self, seed: int, make_backend: MakeBackend = MemoryBackend) -> None:
        rng = random.Random(seed)
        self._seed = seed
        self._random = rng
        self._backend = make_backend(rng)
        self._specs = rng.sample(SPECS, rng.randint(2, 4))
        self._writers = Writers(self._backend, rng, rng.randint(6, 30), rng.choice((0.0, 0.0, 0.0, 0.15)))
        self._faults = FaultPlan(rng, rng.choice((0.0, 0.02, 0.1, 0.3)), rng.randint(0, 25))
        self._settings = Settings(
            batch_size=rng.choice((1, 3, 10, 100)),
            max_bytes=None,
            window_seconds=rng.choice((60, 900)),
            bisect=rng.random() < 0.5,
        )
        self._mapping = EventSourceMapping(
            self._backend.stream, self._backend.clock, self._settings, lambda length: rng.randint(1, length)
        )
        self._running: list[Invocation] = []
        self._warm: list[Sandbox] = []
        self._late: list[Callable[[], Any]] = []

    def run(self) -> Outcome:
        """Run until all is delivered and nothing runs any more; then repair poisoned records and go on."""
        self._drain()
        want, poisoned = expected_so_far(self._specs, self._writers.history, self._backend.clock())
        wrong = self._wrong(want)
        table = Table(self._backend.name, self._backend.client, clock=self._backend.clock)
        waiting = list(list_quarantined(table, redriven=False))
        if len(waiting) != poisoned:
            wrong.append(f"quarantine: expected {poisoned} records, found {len(waiting)}")
        if poisoned:
            # A deployment: every sandbox starts anew.
            self._specs = [repaired(spec) for spec in self._specs]
            self._warm.clear()
            for record in self._random.choices(waiting, k=2 * len(waiting)) + waiting:
                redrive(table, record)
            self._drain()
            if left := len(list(list_quarantined(table, redriven=False))):
                wrong.append(f"quarantine: {left} records cannot be counted after the repair either")
        writers, mapping = self._writers, self._mapping
        wrong += self._wrong(expected(self._specs, writers.live.values(), writers.expired, self._backend.clock()))
        self._backend.drop()
        return Outcome(self._seed, wrong, mapping.deliveries, mapping.delivered, self._faults.injected)

    def _drain(self) -> None:
        for _ in range(_MOST_STEPS):
            if self._writers.left and self._random.random() < 0.2:
                self._writers.write()
            elif self._random.random() < 0.25:
                self._start()
            elif self._random.random() < 0.06:
                self._disturb()
            elif self._running:
                self._step(self._random.choice(self._running))
            elif self._late:
                self._apply_late()
            elif not self._writers.left and self._drained():
                return
        raise AssertionError(f"seed {self._seed} does not end")

    def _start(self) -> None:
        shards = self._mapping.shards()
        if not shards or len(self._running) > 5:
            return
        size = self._random.randint(1, self._settings.batch_size)
        delivery = self._mapping.poll(self._random.choice(shards), size)
        if delivery is not None:
            self._invoke(delivery)

    def _invoke(self, delivery: Delivery) -> None:
        if not self._warm or self._random.random() < 0.2:
            self._warm.append(Sandbox(self._backend, self._specs, self._late.append, self._random))
        sandbox = self._warm.pop(self._random.randrange(len(self._warm)))
        sandbox.invocation = Invocation(sandbox, delivery)
        self._running.append(sandbox.invocation)

    def _step(self, invocation: Invocation) -> None:
        invocation.step(self._faults.draw() if invocation.waiting else None)
        if not invocation.done:
            return
        self._running.remove(invocation)
        invocation.sandbox.invocation = None
        if not isinstance(invocation.error, Crashed):
            self._warm.append(invocation.sandbox)
        if invocation.error is not None and not isinstance(invocation.error, Exception | Crashed):
            raise invocation.error
        if invocation.error is not None or self._faults.strikes("response lost", 0.03):
            self._mapping.fail(invocation.delivery)
        else:
            self._mapping.settle(invocation.delivery, invocation.result)

    def _disturb(self) -> None:
        """Do something outside of any store call."""
        self._random.choice((self._time_out, self._rewind, self._split, self._apply_late, self._wait))()

    def _time_out(self) -> None:
        waited_for = [invocation for invocation in self._running if not invocation.timed_out]
        if waited_for and self._faults.strikes("timeout, invocation runs on"):
            invocation = self._random.choice(waited_for)
            invocation.timed_out = True
            self._mapping.fail(invocation.delivery)

    def _rewind(self) -> None:
        shards = self._mapping.shards()
        if shards and self._faults.strikes("redelivery from an earlier position"):
            shard = self._random.choice(shards)
            page = self._backend.stream.read(shard, None, 10_000)
            passed = [record["dynamodb"]["SequenceNumber"] for record in page.records]
            reached = self._mapping.checkpoint(shard)
            before = passed[: passed.index(reached)] if reached else []
            self._mapping.rewind(shard, self._random.choice([None, *before]))

    def _split(self) -> None:
        if self._writers.left and self._random.random() < 0.2 and self._faults.strikes("shard split"):
            self._backend.split(self._random)

    def _apply_late(self) -> None:
        if self._late:
            self._late.pop(self._random.randrange(len(self._late)))()

    def _wait(self) -> None:
        self._backend.clock.advance(self._random.choice((1, 30, 600)))

    def _drained(self) -> bool:
        # Until no shard is new: a parent that is found drained makes way for its children, and they for theirs.
        polled: set[str] = set()
        while unpolled := [shard for shard in self._mapping.shards() if shard not in polled]:
            for shard in unpolled:
                polled.add(shard)
                delivery = self._mapping.poll(shard)
                if delivery is not None:
                    self._invoke(delivery)
                    return False
        return not self._mapping.on_failure

    def _wrong(self, want: Counts) -> list[str]:
        return differences(want, actual(self._specs, self._backend.items(), self._backend.clock()))


def check(seed: int, make_backend: MakeBackend = MemoryBackend, engine: str = "memory") -> Outcome:
    """Run one schedule; raise `WrongCountError` if a count is not exact."""
    outcome = Schedule(seed, make_backend).run()
    if outcome.wrong:
        raise WrongCountError(outcome, engine)
    return outcome
