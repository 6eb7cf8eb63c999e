"""Layouts that change while events are written: each event is accepted once, by whatever declaration."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Counters, Event, Packed
from dynamodb_counters._items.table_schema import LAYOUT
from dynamodb_counters._layouts import Layouts
from dynamodb_counters._table import Table
from dynamodb_counters.errors import LayoutError
from simulation.clock import EPOCH, VirtualClock
from simulation.faults.hooked_client import HookedClient, once
from simulation.memory_table import MemoryTable

_HOUR: Final = 3600


def _since(hours: int) -> datetime:
    return datetime.fromtimestamp(EPOCH + hours * _HOUR, UTC)


_FIRST = Packed("at", timedelta(minutes=10))
_SECOND = Packed("at", timedelta(minutes=1), parts=3, since=_since(2), before=_FIRST)
_THIRD = Packed("at", timedelta(minutes=6), parts=2, partition_by="shop", since=_since(4), before=_SECOND)
_PLAIN = Event("sale", pk="SHOP#{shop}", sk="T#{at}#{id}")
_DECLARED = [replace(_PLAIN, packed=packed) for packed in (_FIRST, _SECOND, _THIRD)]

_STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),  # which declaration
        st.integers(0, 1),  # which of its processes
        st.sampled_from([0, 0, 30, 600, 2400, _HOUR]),  # how much later
        st.lists(st.tuples(st.integers(-7200, 900), st.integers(0, 2)), max_size=4),  # when, and which shop
        st.integers(0, 5),  # how many of the events before are sent again
    ),
    max_size=20,
)


@given(_STEPS)
def test_every_event_is_accepted_once(steps: list[tuple[int, int, int, list[tuple[int, int]], int]]) -> None:
    clock = VirtualClock()
    table: Any = MemoryTable(clock)
    processes = [[Counters(table.name, client=table, clock=clock) for _ in range(2)] for _ in _DECLARED]
    sent: list[dict[str, Any]] = []
    accepted = set[Any]()
    for declared, process, later, new, again in steps:
        clock.advance(later)
        now = int(clock())
        events = [{"shop": str(shop), "at": now + ahead, "id": len(sent) + n} for n, (ahead, shop) in enumerate(new)]
        events += sent[-again:] if again else []
        # Too late for a date that no longer lies ahead.
        with suppress(LayoutError):
            outcomes = processes[declared][process].accept_many(_DECLARED[declared], events)
            for event, outcome in zip(events, outcomes, strict=True):
                assert outcome.status == ("duplicate" if event["id"] in accepted else "accepted"), event
                accepted.add(event["id"])
            sent += events[: len(new)]


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("first", [0, 1])
def test_layouts_that_two_processes_declare_at_a_time_are_merged(is_held: bool, first: int) -> None:
    clock = VirtualClock()
    memory: Any = MemoryTable(clock)
    table = Table(memory.name, memory, clock=clock)
    held = replace(_DECLARED[0], retention=timedelta(days=9))
    shorter = replace(held, retention=timedelta(days=5))
    tolerant = replace(held, packed=replace(_FIRST, future_tolerance=timedelta(hours=1)))
    one, other = (shorter, tolerant) if first else (tolerant, shorter)
    if is_held:
        Layouts(table).of(held)
    client: Any = HookedClient(memory, once(["put_item"], lambda: Layouts(table).of(other)))

    Layouts(Table(memory.name, client, clock=clock, sleep=clock.advance)).of(one)

    agreed = Layouts(table).of(one)
    assert (agreed.tolerance, agreed.retentions[0]) == (_HOUR, (-math.inf, timedelta(days=5).total_seconds()))


def test_a_layout_that_cannot_be_read_now_fails_the_events_and_no_more() -> None:
    clock = VirtualClock()
    table: Any = MemoryTable(clock)

    def throttle(_: str, send: Any, request: dict[str, Any]) -> Any:
        if LAYOUT in str(request):
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "PutItem")
        return send()

    client: Any = HookedClient(table, throttle)
    events = [{"shop": "s", "at": int(clock()), "id": number} for number in range(2)]
    outcomes = Counters(table.name, client=client, clock=clock).accept_many(_DECLARED[0], events)
    assert [outcome.status for outcome in outcomes] == ["failed", "failed"]
    assert Counters(table.name, client=table, clock=clock).accept(_DECLARED[0], events[0]).status == "accepted"
