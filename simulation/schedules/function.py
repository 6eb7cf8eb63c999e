"""The deployed function: its warm sandboxes and its running invocations, zombies too."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from simulation.delivery.event_source_mapping import Delivery
from simulation.faults.actors import Crashed
from simulation.faults.faulty_client import Fault, FaultPlan
from simulation.oracle.specs import Spec, declarations
from simulation.schedules import coverage
from simulation.schedules.backend import Backend
from simulation.schedules.sandbox import LONGEST_INVOCATION, Invocation, Sandbox


class Function:
    """Runs invocations step by step, each until its timeout at the latest."""

    def __init__(
        self, backend: Backend, rng: random.Random, faults: FaultPlan, specs: Sequence[Spec], *, old_version: bool
    ) -> None:
        self._backend = backend
        self._random = rng
        self._faults = faults
        self._timeout = rng.choice((60.0, LONGEST_INVOCATION, LONGEST_INVOCATION))
        self._declarations = declarations(specs)
        self._deployment = 0
        self._warm: list[Sandbox] = []
        self._doomed: set[Invocation] = set()
        self.old_version = old_version
        self.running: list[Invocation] = []
        self.reached: Counter[str] = Counter()

    def deploy(self, specs: Sequence[Spec]) -> None:
        """Serve what is invoked from now on by new sandboxes of the present version."""
        self._declarations = declarations(specs)
        self._deployment += 1
        self.old_version = False
        self.cool_down()

    def cool_down(self) -> None:
        self._warm.clear()

    def invoke(self, delivery: Delivery, *, doomed: bool) -> None:
        """Start an invocation; a `doomed` one dies early, with some of its writes done."""
        if not self._warm or self._random.random() < 0.2:
            self._warm.append(
                Sandbox(self._backend, self._declarations, self._deployment, self._random, old_version=self.old_version)
            )
        sandbox = self._warm.pop(self._random.randrange(len(self._warm)))
        invocation = sandbox.invocation = Invocation(sandbox, delivery, self._backend.clock.now + self._timeout)
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
        sandbox.invocation = None
        if invocation.error is None:
            self.reached[coverage.DROPPED] += sandbox.report.redelivered
        if sandbox.deployment == self._deployment and not isinstance(invocation.error, Crashed):
            self._warm.append(sandbox)
        if invocation.error is not None and not isinstance(invocation.error, Exception | Crashed):
            raise invocation.error
        return invocation

    def acknowledged(self, shard: str, last: str) -> None:
        """Note that the mapping has moved past a record."""
        for invocation in self.running:
            delivery = invocation.delivery
            if delivery.shard == shard and delivery.records and invocation.timed_out:
                invocation.retried |= int(delivery.records[-1]["dynamodb"]["SequenceNumber"]) <= int(last)

    def _go_on(self, invocation: Invocation) -> None:
        dead = self._backend.clock.now >= invocation.deadline
        dead = dead or (invocation in self._doomed and self._random.random() < 0.3)
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
            self.reached[coverage.OLD_ZOMBIE] += invocation.sandbox.old_version and not self.old_version
        invocation.step(self._faults.draw())
