"""The function under test: a sandbox with the real aggregator, behind a client that faults can be injected into."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dynamodb_counters._commit.batch import Aggregator, Report
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.contributions import Contribute, Contribution
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._table import Table
from simulation.delivery.event_source_mapping import Delivery
from simulation.faults.actors import Actor, Crashed
from simulation.faults.process import Process
from simulation.oracle.aggregates import Row
from simulation.pairs.backend import Backend

LONGEST_INVOCATION: Final = 900.0
"""Lambda's longest timeout: nothing runs beyond it, whatever the mapping has given up on."""

QUARANTINE_SECONDS: Final = 14 * 86_400.0


def fail_for(aggregator: Aggregator, name: str) -> None:
    """Let an aggregator be of code that fails on some events for a declaration."""
    names = aggregator._names
    plan_of = names._plan

    def plan(ahead: frozenset[str]) -> Plan:
        made = plan_of(ahead)
        for source in (source for sources in made._by_type.values() for source in sources):
            for index, program in enumerate(source.programs):
                if program.layout.name == name and not isinstance(program.contribute, _Failing):
                    source.programs[index] = replace(program, contribute=_Failing(program.contribute), by_columns=None)
        return made

    names._plan = plan  # type: ignore[method-assign]


def fails(values: Row) -> bool:
    """Whether code that is mended later fails on an event."""
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
