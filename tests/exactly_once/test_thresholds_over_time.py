"""Thresholds over time: what backfills, deployments, expiry and repairs mean for crossings."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Event, Threshold
from dynamodb_counters._assumptions import RUN_OPEN_AFTER
from dynamodb_counters._control.counted_names import plan_of
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._declarations import flatten
from dynamodb_counters._declarations.codec import decode, encode, same_definition
from dynamodb_counters._fold.crossings import crossings
from dynamodb_counters._fold.records import changes_of
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import Stream, backfill, fill

CALL = Event("call", key="id")
USAGE = Aggregate("usage", CALL, by="customer")
OTHER = Aggregate("other", CALL, pk="OTHER", sk="ALL")
PAGED = replace(USAGE, pk="USAGE", sk="{customer}", pages=True)


def watched(usage: Aggregate, *levels: int, name: str = "plan") -> Any:
    return flatten([usage, Threshold(name, usage, at=levels, direction="both")])


class Calls:
    """A table whose stream is delivered after each write."""

    def __init__(self, declared: Any) -> None:
        self.bench, self.number = Workbench(declared), 0
        self.stream = Stream(self.bench)
        self.bench.aggregator.handle({})

    def call(self, times: int, customer: str = "acme") -> None:
        for _ in range(times):
            self.number += 1
            self.bench.counters.accept(CALL, {"id": str(self.number), "customer": customer})
        self.deliver()

    def deliver(self) -> None:
        while any(self.stream.new().values()):
            self.stream.deliver()

    def fill(self, *names: str) -> None:
        """Backfill names, until every process knows of it."""
        fill(self.bench, self.stream, names=names)
        self.bench.clock.advance(RUN_OPEN_AFTER)
        self.deliver()

    def crossings(self) -> list[tuple[str, str]]:
        """Level and direction of each, in the order of sequence numbers."""
        items = [item for item in self.bench.table.items() if item["_type"]["S"] == "_crossing"]
        items.sort(key=lambda item: item["sequence"]["S"])
        return [(item["level"]["S"], item["direction"]["S"]) for item in items]


@pytest.mark.parametrize("usage", [USAGE, PAGED], ids=["items", "pages"])
def test_a_baseline_crosses_no_line(usage: Aggregate) -> None:
    calls = Calls([OTHER])
    calls.call(4)
    calls.bench.deploy([OTHER, *watched(usage, 3, 6)])
    calls.fill()
    assert calls.crossings() == []
    calls.call(2)
    assert calls.crossings() == [("6", "up")]


@pytest.mark.parametrize("usage", [USAGE, PAGED], ids=["items", "pages"])
def test_a_name_that_is_filled_anew_crosses_no_line_twice(usage: Aggregate) -> None:
    calls = Calls(watched(usage, 3, 6))
    calls.call(4)
    calls.fill("usage")
    calls.call(2)
    assert calls.crossings() == [("3", "up"), ("6", "up")]


@pytest.mark.parametrize("usage", [USAGE, PAGED], ids=["items", "pages"])
def test_what_a_name_counts_before_its_baseline_is_added_crosses_no_line(usage: Aggregate) -> None:
    calls = Calls(watched(usage, 3, 6))
    calls.call(4)
    for step in backfill(calls.bench, calls.stream, names=["usage"]).steps():
        calls.call(3 if step.phase == "scanning" and calls.number < 7 else 0)
    calls.bench.clock.advance(RUN_OPEN_AFTER + 1)  # A record's time is in whole seconds.
    # As a process does that has read the registry since.
    calls.bench.deliver_all()
    assert calls.crossings() == [("3", "up")]
    calls.bench.counters.retract(CALL, {"id": "7"})
    calls.bench.counters.retract(CALL, {"id": "6"})
    calls.deliver()
    assert calls.crossings() == [("3", "up"), ("6", "down")]


@pytest.mark.parametrize("usage", [USAGE, PAGED], ids=["items", "pages"])
def test_a_threshold_watches_from_when_every_process_knows_of_it(usage: Aggregate) -> None:
    calls = Calls([usage])
    calls.call(4)
    early = changes_of(calls.bench.records())
    calls.bench.deploy(watched(usage, 3, 6))
    plan = plan_of(read_registry(calls.bench.store))
    # However late, and by whom, they are delivered.
    assert crossings(plan, early, Counter()) == []
    calls.call(2)
    calls.bench.deliver_all()
    assert calls.crossings() == [("6", "up")]


def test_a_threshold_keeps_its_levels() -> None:
    calls = Calls(watched(USAGE, 3))
    calls.bench.deploy(watched(USAGE, 2))
    calls.call(4)
    assert calls.crossings() == [("3", "up")]
    calls.bench.deploy([*watched(USAGE, 5, name="plan_v2")])
    calls.call(2)
    assert calls.crossings() == [("3", "up"), ("5", "up")]


def test_levels_change_nothing_about_what_is_counted() -> None:
    [plain], [armed] = flatten([USAGE]), watched(USAGE, 3)
    assert plain == armed
    assert same_definition(plain, armed)
    [read] = decode(encode((armed,)))
    assert isinstance(read, Aggregate)
    assert isinstance(armed, Aggregate)
    assert read._thresholds == armed._thresholds != ()


def test_a_group_that_expires_crosses_nothing() -> None:
    daily = Aggregate("daily", CALL, by=("customer", "at:day"), retention=timedelta(days=1))
    calls = Calls(watched(daily, 2))
    now = calls.bench.clock.now
    for number in range(3):
        event = {"id": str(number), "customer": "acme", "at": int(now)}
        calls.bench.counters.accept(CALL, event)
    calls.deliver()
    assert calls.crossings() == [("2", "up")]
    calls.bench.clock.advance(8 * 86_400)
    assert calls.bench.table.expire(), "the group is still there"
    calls.deliver()
    assert calls.crossings() == [("2", "up")]
