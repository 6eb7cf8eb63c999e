"""Thresholds over time: what redefinitions, deployments, expiry and repairs mean for crossings."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Event, Threshold
from dynamodb_counters._assumptions import FRESH, LONGEST_INVOCATION, SETTLED_AFTER, SKEW
from dynamodb_counters._changes.effective import fingerprint, same_meaning
from dynamodb_counters._control.deployments import last_declarations
from dynamodb_counters._declarations import flatten
from dynamodb_counters._declarations.codec import decode, encode
from dynamodb_counters._fold.crossings import crossings
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters.errors import CountersError
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import Stream, fill

CALL = Event("call", key="id")
USAGE = Aggregate("usage", CALL, by="customer")
PAGED = replace(USAGE, pk="USAGE", sk="{customer}", pages=True)
_ENDED = LONGEST_INVOCATION + FRESH + SKEW + SETTLED_AFTER


def watched(usage: Aggregate, *levels: int, **options: Any) -> Any:
    return flatten([usage, Threshold("plan", usage, at=levels, direction="both", **options)])


class Calls:
    """A table whose stream is delivered after each write."""

    def __init__(self, declared: Any) -> None:
        self.bench, self.number = Workbench(declared), 0
        self.stream = Stream(self.bench)
        self.bench.aggregator.handle({})

    def deploy(self, declared: Any) -> None:
        self.bench.declare(declared)
        self.bench.clock.advance(_ENDED)

    def call(self, times: int, customer: str = "acme", kind: str = "paid") -> None:
        for _ in range(times):
            self.number += 1
            self.bench.counters.accept(CALL, {"id": str(self.number), "customer": customer, "kind": kind})
        self.deliver()

    def deliver(self) -> None:
        while any(self.stream.new().values()):
            self.stream.deliver()

    def backfill(self) -> None:
        fill(self.bench, self.stream)
        self.bench.clock.advance(_ENDED)
        self.bench.aggregator = self.bench.process()
        self.deliver()

    def crossings(self) -> list[tuple[str, str, str]]:
        """Generation, level and direction of each, in the order of sequence numbers."""
        items = [item for item in self.bench.table.items() if item["_type"]["S"] == "_crossing"]
        items.sort(key=lambda item: item["sequence"]["S"])
        return [(item["generation"]["N"], item["level"]["S"], item["direction"]["S"]) for item in items]


@pytest.mark.parametrize("usage", [USAGE, PAGED], ids=["items", "pages"])
def test_a_redefinition_is_silent_until_it_is_read_and_has_crossings_of_its_own(usage: Aggregate) -> None:
    calls = Calls(watched(usage, 3, 6))
    calls.call(4)
    assert calls.crossings() == [("0", "3", "up")]
    changed = watched(replace(usage, where=Attr("kind").eq("paid")), 3, 6)
    calls.deploy(changed)
    calls.backfill()
    assert calls.crossings() == [("0", "3", "up")], "crossings of a backfill"
    calls.call(2)
    assert calls.crossings() == [("0", "3", "up"), ("1", "6", "up")]


@pytest.mark.parametrize("usage", [USAGE, PAGED], ids=["items", "pages"])
def test_a_crossing_in_two_generations_is_that_of_the_first(usage: Aggregate) -> None:
    calls = Calls(watched(usage, 3, 6))
    calls.call(4)
    calls.deploy(watched(replace(usage, where=Attr("kind").eq("paid")), 3, 6))
    # For half an hour from the switch on, both are folded.
    fill(calls.bench, calls.stream)
    calls.call(2)
    assert calls.crossings() == [("0", "3", "up"), ("0", "6", "up")]


@pytest.mark.parametrize("usage", [USAGE, PAGED], ids=["items", "pages"])
def test_a_baseline_crosses_no_line_though_nothing_else_counts_the_name(usage: Aggregate) -> None:
    calls = Calls(watched(usage, 3, 6))
    calls.call(4)
    changed = watched(replace(usage, where=Attr("kind").eq("paid")), 3, 6)
    calls.deploy(changed)
    calls.backfill()
    folded = last_declarations(calls.bench.store, CountersError, folded=True)
    alone = Plan(tuple(each for each in folded if each.name == "usage~1"))
    assert crossings(alone, changes_of(calls.bench.records()), Counter()) == []
    calls.call(2)
    assert [each.level for each in crossings(alone, changes_of(calls.bench.records()), Counter())] == [6]


def test_a_threshold_that_counts_once_is_silent_in_the_next_generation() -> None:
    calls = Calls(watched(USAGE, 3, 6, once=True))
    calls.call(4)
    changed = watched(replace(USAGE, where=Attr("kind").ne("free")), 3, 6, once=True)
    calls.deploy(changed)
    calls.backfill()
    for number in range(1, 5):
        calls.bench.counters.retract(CALL, {"id": str(number)})
    calls.deliver()
    calls.call(4)
    assert [level for _, level, direction in calls.crossings() if direction == "up"] == ["3"]


def test_a_record_is_judged_by_the_thresholds_of_its_time() -> None:
    calls = Calls(watched(USAGE, 3))
    calls.call(2)
    before = calls.bench.aggregator
    later = watched(USAGE, 5)
    calls.deploy(later)
    old, calls.bench.aggregator = calls.bench.aggregator, before
    calls.call(4)
    calls.bench.aggregator = old
    calls.deliver()
    assert calls.crossings() == [("0", "5", "up")]


def test_levels_change_nothing_about_what_is_counted() -> None:
    [plain], [armed] = flatten([USAGE]), watched(USAGE, 3)
    assert plain == armed
    assert same_meaning(plain, armed)
    assert not same_meaning(plain, armed, limits=True)
    assert fingerprint(plain) == fingerprint(armed)
    [read] = decode(encode((armed,)))
    assert isinstance(read, Aggregate)
    assert isinstance(armed, Aggregate)
    assert read._thresholds == armed._thresholds != ()


def test_a_group_that_expires_crosses_nothing() -> None:
    daily = Aggregate("daily", CALL, by=("customer", "at:day"), retention=timedelta(days=1))
    calls = Calls(watched(daily, 2))
    now = calls.bench.clock.now
    for number in range(3):
        event = {"id": str(number), "customer": "acme", "kind": "paid", "at": int(now)}
        calls.bench.counters.accept(CALL, event)
    calls.deliver()
    assert calls.crossings() == [("0", "2", "up")]
    calls.bench.clock.advance(8 * 86_400)
    assert calls.bench.table.expire(), "the group is still there"
    calls.deliver()
    assert calls.crossings() == [("0", "2", "up")]
