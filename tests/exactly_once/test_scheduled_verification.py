"""Verification on a schedule: one run after the other, each in as many invocations as it takes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._control.run_items import run_key
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError
from dynamodb_counters.handlers.verifier import LONGEST, work_on_schedule
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import REVENUE, Stream, bench, put, spoil

__all__ = ["bench"]


class Invocations:
    """Invokes the verifier; each invocation has 100 seconds."""

    def __init__(self, bench: Workbench) -> None:
        self.bench, self.stream = bench, Stream(bench)
        client: Any = bench.table
        self.table = Table(bench.table.name, client, clock=bench.clock, sleep=self._sleep)
        make = partial(Verification.of_table, self.table, bench.table.stream, now=bench.clock, segments=1)
        self.work = partial(work_on_schedule, self.table, make, bench.clock)

    def __call__(self, *, begins: bool = False) -> Verification | None:
        ends = self.bench.clock() + 100
        return self.work(begins=begins, time_left=lambda: ends - self.bench.clock())

    @property
    def open_runs(self) -> list[str]:
        return [run.id for run in read_registry(self.table).runs]

    def _sleep(self, seconds: float) -> None:
        self.bench.clock.advance(seconds)
        self.stream.deliver()


def test_a_verification_takes_as_many_invocations_as_it_needs(bench: Workbench) -> None:
    invoke = Invocations(bench)
    spoil(bench, REVENUE, "total", 5, customer="ann")
    assert (invoke(), invoke.open_runs) == (None, [])
    assert invoke(begins=True) is None
    [run] = invoke.open_runs
    put(bench, 90, 3, "bob")
    done, invocations = None, 1
    while done is None:
        assert invocations < 20
        bench.clock.advance(60)
        # No other is opened while one is open.
        done, invocations = invoke(begins=True), invocations + 1
        assert invoke.open_runs in ([run], [])
    assert invocations >= 3
    assert [(each.group, each.missing) for each in done.differences] == [({"customer": "ann"}, {"total": -5})]
    assert (invoke(), invoke.open_runs) == (None, [])


def test_a_verification_that_another_process_is_opening_is_left_alone(bench: Workbench) -> None:
    invoke = Invocations(bench)
    invoke(begins=True)
    [run] = read_registry(invoke.table).runs
    # As it is until the process that opens it has entered the first phase.
    item = {**invoke.table.read_item(run_key(run.id)), "phase": {"S": "opening"}}
    bench.table.put_item(TableName=bench.table.name, Item=item)
    assert invoke() is None
    assert invoke.open_runs == [run.id]


def test_a_verification_that_does_not_end_is_given_up(bench: Workbench) -> None:
    invoke = Invocations(bench)
    invoke(begins=True)
    bench.clock.advance(LONGEST + 400)
    with pytest.raises(BackfillError, match="it has not ended in 20 hours"):
        invoke()
    assert invoke.open_runs == []
