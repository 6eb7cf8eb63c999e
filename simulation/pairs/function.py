"""The deployed function: the real aggregator in warm sandboxes, and its running invocations, zombies too."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from counters_lambda.counting.batch import Aggregator, Report
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.plan import Contribute, Contribution, Plan
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CheckpointError
from simulation.delivery.event_source_mapping import Delivery
from simulation.faults.actors import Actor, Crashed
from simulation.faults.faulty_client import Fault, FaultPlan
from simulation.faults.process import Process
from simulation.oracle.aggregates import Row
from simulation.pairs import coverage
from simulation.pairs.apart import Backend

LONGEST_INVOCATION: Final = 900.0
"""Lambda's longest timeout: nothing runs beyond it, whatever the mapping has given up on."""

QUARANTINE_SECONDS: Final = 14 * 86_400.0


def fail_for(aggregator: Aggregator, name: str) -> None:
    """Let an aggregator be of code that fails on some events for a declaration."""
    names = aggregator._names
    plan_of = names._plan

    def plan(ahead: frozenset[str]) -> Plan:
        result = plan_of(ahead)
        for source in (source for sources in result._by_type.values() for source in sources):
            for index, program in enumerate(source.programs):
                if program.layout.name == name and not isinstance(program.contribute, _Failing):
                    source.programs[index] = replace(program, contribute=_Failing(program.contribute), by_columns=None)
        return result

    names._plan = plan  # type: ignore[method-assign]


def fails(values: Row) -> bool:
    """Return whether code that is mended later fails on an event."""
    return int(values["id"]) % 2 == 1


@dataclass(frozen=True, slots=True)
class _Failing:
    contribute: Contribute

    def __call__(self, image: Image, created: float | None) -> tuple[Contribution, ...] | None:
        if fails({name: next(iter(value.values())) for name, value in image.items()}):
            raise LookupError("the code fails on it")
        return self.contribute(image, created)


class Invocation(Actor):
    """One invocation of the function, dead at its `deadline`.

    `timed_out` once the mapping has given up on it although it runs on, `asleep` while it makes no step, `retried` once
    its records are acknowledged to another, `outlived` once it has made a step after that, `disturbed` once it has met
    a fault; `paused` is how long it has waited on its own accord.
    """

    def __init__(self, sandbox: Sandbox, delivery: Delivery, deadline: float) -> None:
        super().__init__(lambda: sandbox.handle(delivery, deadline))
        self.sandbox = sandbox
        self.delivery = delivery
        self.deadline = deadline
        self.timed_out = self.asleep = self.retried = self.outlived = self.disturbed = False
        self.paused = 0.0

    def die(self) -> None:
        """End before the first step."""
        self.done, self.error = True, Crashed()


class Sandbox(Process):
    """An execution environment of one `deployment`: the aggregator as one cold start makes it.

    `rng` decides jitter, order, the skew of its clock, and when late requests land. Its code fails on some events for
    the declaration `fails_for`.
    """

    def __init__(
        self,
        backend: Backend,
        declarations: tuple[Declaration, ...],
        deployment: int,
        rng: random.Random,
        fails_for: str = "",
    ) -> None:
        super().__init__(backend.client, backend.name, backend.clock, rng, right=1)
        self._begin(self.table, declarations, backend.source_table, fails_for)
        self.deployment = deployment
        self.report = Report()

    def _begin(
        self, table: Table, declarations: tuple[Declaration, ...], source_table: str | None, fails_for: str
    ) -> None:
        self._aggregator = Aggregator(
            table, declarations, quarantine_retention_seconds=QUARANTINE_SECONDS, source_table=source_table
        )
        if fails_for:
            fail_for(self._aggregator, fails_for)

    def handle(self, delivery: Delivery, deadline: float) -> Mapping[str, Any]:
        self.deadline = deadline
        self.report = self._aggregator.handle(delivery.event, lambda: deadline - self._clock.now)
        return {"state": self.report.state(delivery.event)}

    def _sleep(self, seconds: float) -> None:
        assert isinstance(self.call, Invocation)
        self.call.paused += seconds
        self._pass_time(seconds)


LONGEST_BACKOFF: Final = 2.0
"""An invocation that meets no fault pauses no longer before it tries again."""

_IN_TIME: Final = 60.0
"""With less time left, an invocation may well give up."""


class Function:
    """Runs invocations step by step, each until its timeout at the latest."""

    def __init__(
        self,
        backend: Backend,
        rng: random.Random,
        faults: FaultPlan,
        declared: Sequence[Declaration],
        fails_for: str = "",
        *,
        make_sandbox: Callable[..., Sandbox] = Sandbox,
    ) -> None:
        self._make_sandbox = make_sandbox
        self._backend = backend
        self._random = rng
        self._faults = faults
        self._timeout = rng.choice((60.0, LONGEST_INVOCATION, LONGEST_INVOCATION))
        self._declarations = tuple(declared)
        self.fails_for = fails_for
        """The declaration for which its code fails on some events."""
        self._deployment = 0
        self._warm: list[Sandbox] = []
        self._stragglers: list[Sandbox] = []
        self._has_stragglers = False
        self._doomed: set[Invocation] = set()
        self.running: list[Invocation] = []
        self.reached: Counter[str] = Counter()
        self.standstills: list[str] = []
        """Invocations that failed, or waited for long, without a fault."""
        self.paused = 0.0

    def deploy(self, declared: Sequence[Declaration], *, stragglers: bool = False) -> None:
        """Serve what is invoked from now on by new sandboxes; `stragglers` are invoked on."""
        if stragglers:
            self._stragglers += self._warm
        else:
            self._stragglers.clear()
        self._declarations = tuple(declared)
        self._deployment += 1
        self._has_stragglers = stragglers
        self._warm.clear()

    def mend(self) -> None:
        """Deploy code that fails on nothing, once nothing of the former is left."""
        assert not self.running
        self.cool_down()
        self.fails_for = ""

    def cool_down(self) -> None:
        self._warm.clear()
        self._stragglers.clear()

    def invoke(self, delivery: Delivery, *, doomed: bool) -> None:
        """Start an invocation; a `doomed` one dies early, with some of its writes done."""
        if not self._warm or self._random.random() < 0.2:
            box = self._make_sandbox(self._backend, self._declarations, self._deployment, self._random, self.fails_for)
            self._warm.append(box)
        warm = self._warm
        if self._stragglers and self._random.random() < 0.3:
            warm = self._stragglers
            self.reached[coverage.STRAGGLER] += 1
        sandbox = warm.pop(self._random.randrange(len(warm)))
        invocation = sandbox.call = Invocation(sandbox, delivery, self._backend.clock.now + self._timeout)
        self.running.append(invocation)
        if doomed:
            self._doomed.add(invocation)

    def step(self) -> Invocation | None:
        """Let one invocation go on to its next store call, and return it if it has ended.

        One that sleeps usually goes on once its records are acknowledged to its retry.
        """
        awake = [invocation for invocation in self.running if not invocation.asleep]
        awake = awake or [other for other in self.running if other.retried or self._random.random() < 0.04]
        if not awake:
            return None
        invocation = self._random.choice(awake)
        invocation.asleep = False
        self._go_on(invocation)
        if not invocation.done:
            return None
        self.running.remove(invocation)
        self._doomed.discard(invocation)
        sandbox = invocation.sandbox
        sandbox.call = None
        self._look_at(invocation)
        if invocation.error is None:
            self.reached[coverage.DROPPED] += sandbox.report.redelivered
        if not isinstance(invocation.error, Crashed):
            if sandbox.deployment == self._deployment:
                self._warm.append(sandbox)
            elif self._has_stragglers:
                self._stragglers.append(sandbox)
        if invocation.error is not None and not isinstance(invocation.error, Exception | Crashed):
            raise invocation.error
        return invocation

    def acknowledged(self, shard: str, last: str) -> None:
        """Note that the mapping has moved past a record."""
        for invocation in self.running:
            delivery = invocation.delivery
            if delivery.shard == shard and delivery.records and invocation.timed_out:
                invocation.retried |= int(delivery.records[-1]["dynamodb"]["SequenceNumber"]) <= int(last)

    def _look_at(self, invocation: Invocation) -> None:
        """Note whether an invocation that has ended failed or waited for nothing."""
        if invocation.disturbed or isinstance(invocation.error, Crashed):
            return
        self.paused = max(self.paused, invocation.paused)
        in_time = self._backend.clock.now < invocation.deadline - _IN_TIME
        if reason := wait_of(invocation.error):
            self.reached[reason] += 1
            return
        if invocation.paused > LONGEST_BACKOFF or (invocation.error is not None and in_time):
            error = f"{type(invocation.error).__name__}: {invocation.error}"
            self.standstills.append(f"an invocation without a fault waited {invocation.paused:.1f} s and met {error}")

    def _go_on(self, invocation: Invocation) -> None:
        dead = self._backend.clock.now >= invocation.deadline
        dead = dead or (invocation in self._doomed and self._random.random() < 0.3)
        invocation.disturbed |= dead
        if not invocation.waiting:
            if dead:
                invocation.die()
            else:
                invocation.step()
            return
        if dead:
            invocation.step(self._random.choice((Fault.CRASH_BEFORE, Fault.CRASH_DURING)))
            return
        if invocation.retried and not invocation.outlived:
            invocation.outlived = True
            self.reached[coverage.OUTLIVED] += 1
        fault = self._faults.draw(invocation.waiting)
        invocation.disturbed |= fault is not Fault.NONE
        invocation.step(fault)


def wait_of(error: BaseException | None) -> str:
    """Return what an invocation must wait for that has failed, by its name in `coverage`; "" for nothing."""
    is_unreadable = isinstance(error, CheckpointError) and "this version cannot read" in str(error)
    return coverage.UNREADABLE if is_unreadable else ""
