"""Thresholds at the command line: what is armed, and what fired."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from dynamodb_counters import Aggregate, Count, Distinct, Event, Threshold
from dynamodb_counters._declarations.codec import encode
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from tests.unit.cli.in_process import Done, run

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CALL = Event("call", key="id")
USAGE = Aggregate("usage", CALL, by=("customer", "at:month"), calls=Count())
USERS = Distinct("users", CALL, by="customer", member="user")
PLAN = Threshold("plan", USAGE, at=[2, 3], direction="both")
FIRST = Threshold("first", USAGE, at=[1, 2, 10], once=True, burst="highest")
UNUSED = Threshold("unused", USERS, at=[100])


@pytest.fixture
def counters() -> Iterator[CountersInMemory]:
    """Two customers have a call an hour each; then two of b's are retracted, accepted at once, and retracted."""
    with counters_in_memory([USAGE, USERS, PLAN, FIRST, UNUSED], now=NOW) as counters:
        for hour in range(3):
            for customer in "ab":
                counters.accept(CALL, call(f"{customer}{hour}", customer))
            counters.clock.advance(timedelta(hours=1))
        for hour in range(3):
            if hour == 1:
                counters.accept_many(CALL, [call("b1", "b"), call("b2", "b")])
            else:
                counters.retract(CALL, {"id": "b1"})
                counters.retract(CALL, {"id": "b2"})
            counters.clock.advance(timedelta(hours=1))
        yield counters


def call(name: str, customer: str) -> dict[str, str]:
    return {"id": name, "customer": customer, "at": NOW.isoformat(), "user": "u1"}


def ask(counters: CountersInMemory, *arguments: str) -> Done:
    return run(*arguments, "--table", counters.table_name, client=counters.client, clock=counters.clock)


def fired(counters: CountersInMemory, *arguments: str) -> list[str]:
    found = ask(counters, "thresholds", *arguments, "--json").document["fired"]
    keys = ("customer", "direction", "level", "old", "new", "at")
    return [" ".join(str({**one, **one["group"]}[key]) for key in keys) for one in found]


SECOND = ["a up 2 1 2 2026-11-20T13:00:00Z", "b up 2 1 2 2026-11-20T13:00:00Z"]
THIRD = ["a up 3 2 3 2026-11-20T14:00:00Z", "b up 3 2 3 2026-11-20T14:00:00Z"]
B_DOWN = ["b down 2 2 1 2026-11-20T15:00:00Z", "b down 3 3 2 2026-11-20T15:00:00Z"]
B_AGAIN = ["b up 3 1 3 2026-11-20T16:00:00Z", "b up 2 1 3 2026-11-20T16:00:00Z"]
B_LAST = ["b down 2 2 1 2026-11-20T17:00:00Z", "b down 3 3 2 2026-11-20T17:00:00Z"]


def test_crossings_are_listed_the_latest_first(counters: CountersInMemory) -> None:
    found = fired(counters, "plan")
    assert found[:6] == [*B_LAST, *B_AGAIN, *B_DOWN]
    assert [sorted(found[6:8]), sorted(found[8:])] == [THIRD, SECOND]


def test_crossings_of_a_span_are_found_also_where_the_key_has_no_time(counters: CountersInMemory) -> None:
    assert fired(counters, "plan", "--since", "2026-11-20T16:00Z") == B_LAST + B_AGAIN
    assert sorted(fired(counters, "plan", "--until", "2026-11-20T14:00Z")) == SECOND
    both = ("--since", "2026-11-20T15:00Z", "--until", "2026-11-20T16:00Z")
    assert fired(counters, "plan", *both) == B_DOWN
    assert len(fired(counters, "first")) == 4
    assert len(fired(counters, "first", "--since", "2026-11-20T13:00Z", "--until", "2026-11-20T14:00Z")) == 2
    assert len(fired(counters, "first", "--until", "2026-11-20T13:00Z")) == 2
    assert fired(counters, "first", "--since", "2026-11-20T14:00Z") == []
    assert len(fired(counters)) == 14


def test_a_list_that_is_cut_says_so(counters: CountersInMemory) -> None:
    done = ask(counters, "thresholds", "plan", "--limit", "2")
    assert done.out.count("Z  plan") == 2
    assert done.err == "there are more: --limit 4\n"
    assert fired(counters, "plan", "--limit", "1") == B_LAST[:1]
    assert len(fired(counters, "first", "--limit", "1")) == 1
    assert not ask(counters, "thresholds", "plan", "--limit", "10", "--json").document["more"]


def test_a_threshold_that_is_not_there_is_refused(counters: CountersInMemory) -> None:
    done = ask(counters, "thresholds", "plam")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: no threshold 'plam' is armed; there is: first, plan, unused\n"


def test_crossings_of_a_threshold_that_was_removed_are_shown(counters: CountersInMemory) -> None:
    declared = ("--declarations", encode((USAGE,)))
    found = ask(counters, "thresholds", "plan", *declared, "--json").document
    assert len(found["fired"]) == 10
    assert ask(counters, "thresholds", *declared).out.strip() == ""
