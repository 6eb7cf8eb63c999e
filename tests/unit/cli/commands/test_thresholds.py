"""Thresholds at the command line: what is armed, what fired, and what is sent again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest

from dynamodb_counters import Aggregate, Count, Distinct, Event, Threshold
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._http.requests import read_json
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from tests.unit.cli.in_process import Done, run

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CALL = Event("call", key="id")
USAGE = Aggregate("usage", CALL, by=("customer", "at:month"), calls=Count())
USERS = Distinct("users", CALL, by="customer", member="user")
PLAN = Threshold("plan", USAGE, at=[2, 3], direction="both")
FIRST = Threshold("first", USAGE, at=[1, 2, 10], once=True, burst="highest")
UNUSED = Threshold("unused", USERS, at=[100])


class Bus:
    """An event bus; from some entry on, it refuses."""

    def __init__(self, takes: int = 1000) -> None:
        self.sent: list[dict[str, Any]] = []
        self._takes = takes

    def put_events(self, *, Entries: Sequence[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 - as the SDK calls it
        taken = Entries[: self._takes - len(self.sent)]
        self.sent += taken
        refused = {"ErrorCode": "ThrottlingException", "ErrorMessage": "too fast"}
        return {"Entries": [{"EventId": "1"}] * len(taken) + [refused] * (len(Entries) - len(taken))}

    def details(self) -> list[dict[str, Any]]:
        return [read_json(entry["Detail"]) for entry in self.sent]


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


def ask(counters: CountersInMemory, *arguments: str, bus: Bus | None = None) -> Done:
    clients = {"events": bus} if bus else None
    return run(
        *arguments, "--table", counters.table_name, client=counters.client, clients=clients, clock=counters.clock
    )


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


def test_crossings_are_sent_again_as_they_were_sent(counters: CountersInMemory) -> None:
    bus = Bus()
    done = ask(counters, "thresholds", "plan", "--replay", "--bus", "sales", bus=bus)
    assert (done.code, done.out) == (0, "10 sent\n")
    told = ask(counters, "thresholds", "plan", "--json").document["fired"]
    assert [one["id"] for one in bus.details()] == [one["id"] for one in told[::-1]]
    assert [one["level"] for one in bus.details()[-4:]] == [2, 3, 3, 2]
    described = counters.client.describe_table(TableName=counters.table_name)["Table"]
    for entry in bus.sent:
        assert (entry["EventBusName"], entry["DetailType"]) == ("sales", "Threshold Crossed")
        assert described["LatestStreamArn"].startswith(entry["Resources"][0] + "/stream/")
    bus = Bus()
    ask(counters, "thresholds", "plan", "--replay", "--since", "2026-11-20T15:00Z", "--limit", "2", bus=bus)
    assert [one["id"] for one in bus.details()] == [one["id"] for one in told[1::-1]]


def test_a_replay_that_is_refused_says_where_it_stands(counters: CountersInMemory) -> None:
    bus = Bus(takes=3)
    done = ask(counters, "thresholds", "plan", "--replay", bus=bus)
    assert (done.code, done.out, len(bus.sent)) == (3, "", 3)
    assert done.err == "error: EventBridge refuses crossings from 2026-11-20T14:00:00Z on: ThrottlingException\n"


def test_a_replay_passes_over_what_eventbridge_can_never_take(counters: CountersInMemory) -> None:
    bus = Bus()
    with patch.object(bus, "put_events", lambda *, Entries: {"Entries": [malformed(one, bus) for one in Entries]}):  # noqa: N803 - as the SDK calls it
        done = ask(counters, "thresholds", "plan", "--replay", bus=bus)
    assert (done.code, done.out) == (3, "9 sent\n")
    assert len(bus.sent) == 9
    [line, last] = done.err.splitlines()
    assert line.startswith("refused: ")
    assert line.endswith(": MalformedDetail: no JSON")
    assert last == "error: EventBridge can never take 1 of the crossings"


def malformed(entry: dict[str, Any], bus: Bus) -> dict[str, str]:
    """The answer to an entry: one of customer a's is never taken."""
    if entry["Time"] == "2026-11-20T13:00:00Z" and '"customer": "a"' in entry["Detail"]:
        return {"ErrorCode": "MalformedDetail", "ErrorMessage": "no JSON"}
    bus.sent.append(entry)
    return {"EventId": "1"}


def test_a_test_event_says_so_and_is_of_no_group(counters: CountersInMemory) -> None:
    bus = Bus()
    for name in ("plan", "unused"):
        assert ask(counters, "thresholds", name, "--test", bus=bus).out == "1 sent\n"
    plan, unused = bus.details()
    assert plan["test"] is unused["test"] is True
    assert plan.keys() - {"test"} == ask(counters, "thresholds", "--json").document["fired"][0].keys()
    assert (plan["group"], plan["level"], plan["direction"]) == ({"customer": "test", "at:month": "test"}, 3, "up")
    assert (unused["aggregate"], unused["measure"], unused["level"]) == ("users", "distinct", 100)
    assert plan["id"] == "test-2026-11-20T18:00:00Z"


@pytest.mark.parametrize("arguments", [("plam",), ("plam", "--test"), ("plam", "--replay"), ("--test",)])
def test_a_threshold_that_is_not_there_is_refused(counters: CountersInMemory, arguments: tuple[str, ...]) -> None:
    done = ask(counters, "thresholds", *arguments, bus=Bus())
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(" is armed; there is: first, plan, unused\n")


def test_crossings_of_a_threshold_that_was_removed_are_shown(counters: CountersInMemory) -> None:
    declared = ("--declarations", encode((USAGE,)))
    found = ask(counters, "thresholds", "plan", *declared, "--json").document
    assert len(found["fired"]) == 10
    assert ask(counters, "thresholds", *declared).out.strip() == ""
