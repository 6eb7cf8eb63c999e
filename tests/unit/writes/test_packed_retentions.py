"""A `retention` that changes while events are written: what expires by the old one is never accepted again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Counters, Event, Packed
from dynamodb_counters.errors import LayoutError
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable

_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_SHORT = Event(
    "sale", pk="SHOP#{shop}", sk="T#{at}#{id}", retention=timedelta(hours=1), packed=Packed("at", timedelta(minutes=10))
)
_DECLARED = [
    _SHORT,
    replace(_SHORT, retention=timedelta(hours=3)),
    replace(_SHORT, retention=timedelta(days=7)),
    replace(_SHORT, retention=None),
]


class World:
    """A table; each process declares what it is given."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.table: Any = MemoryTable(self.clock)

    def process(self) -> Counters:
        return Counters(self.table.name, client=self.table, clock=self.clock)

    def sales(self, number: int) -> list[dict[str, Any]]:
        return [{"shop": "s", "at": int(self.clock()), "id": each} for each in range(number)]

    def statuses(self, event: Event, sales: list[dict[str, Any]]) -> set[str]:
        return {outcome.status for outcome in self.process().accept_many(event, sales)}


def test_a_longer_retention_holds_for_the_buckets_after_an_hour_and_the_future_tolerance() -> None:
    world, longer = World(), _DECLARED[2]
    assert world.statuses(_SHORT, world.sales(1)) == {"accepted"}
    early = world.sales(2)
    assert world.statuses(longer, early[1:]) == {"accepted"}
    world.clock.advance(_HOUR + 900 + 600)
    late = world.sales(3)[2:]
    assert world.statuses(longer, late) == {"accepted"}

    world.clock.advance(3 * _DAY)
    world.table.expire()
    assert world.statuses(longer, early[1:]) == {"too_late"}
    assert world.statuses(longer, late) == {"duplicate"}
    world.clock.advance(4 * _DAY + 600)
    assert world.statuses(longer, late) == {"too_late"}


def test_a_shorter_retention_holds_at_once_for_every_process() -> None:
    world, longer = World(), _DECLARED[2]
    old = world.process()
    [sale] = world.sales(1)
    assert old.accept(longer, sale).status == "accepted"
    assert world.statuses(_SHORT, [sale]) == {"duplicate"}

    world.clock.advance(2 * _HOUR)
    assert world.statuses(_SHORT, [sale]) == {"too_late"}
    assert old.accept_many(longer, [sale])[0].status == "too_late"


def test_a_plain_event_is_forgotten_when_its_old_retention_said() -> None:
    world, plain = World(), replace(_SHORT, packed=None)
    sales = world.sales(2)
    assert world.statuses(plain, sales[:1]) == {"accepted"}
    longer = replace(plain, retention=timedelta(days=7))
    assert world.statuses(longer, sales) == {"duplicate", "accepted"}

    world.clock.advance(2 * _DAY)
    world.table.expire()
    assert world.statuses(longer, sales[:1]) == {"accepted"}
    assert world.statuses(longer, sales[1:]) == {"duplicate"}


def test_a_retention_is_not_raised_where_events_of_any_time_are_accepted() -> None:
    world = World()
    anytime = replace(_SHORT, packed=Packed("at", timedelta(minutes=10), future_tolerance=None))
    assert world.statuses(anytime, world.sales(1)) == {"accepted"}

    with pytest.raises(LayoutError, match=r"^invalid retention=.*7 days.*: expected at most .*1:00:00"):
        world.statuses(replace(anytime, retention=timedelta(days=7)), world.sales(1))


_STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),  # which declaration
        st.integers(0, 1),  # which of its processes
        st.sampled_from([0, 0, 30, 600, _HOUR, 4 * _HOUR, _DAY, 2 * _DAY, 9 * _DAY]),  # how much later
        st.integers(0, 7),  # which of the expired items TTL deletes
        st.lists(st.integers(-7200, 900), max_size=3),  # when
        st.integers(0, 6),  # how many of the events before are sent again
    ),
    max_size=20,
)


@given(_STEPS)
def test_no_event_is_accepted_twice(steps: list[tuple[int, int, int, int, list[int], int]]) -> None:
    world = World()
    processes = [[world.process() for _ in range(2)] for _ in _DECLARED]
    sent: list[dict[str, Any]] = []
    accepted = set[int]()
    for declared, process, later, expires, new, again in steps:
        world.clock.advance(later)
        for index, item in enumerate(list(world.table.items())):
            if int(item.get("ttl", {"N": "10000000000000"})["N"]) < world.clock() and expires >> index % 3 & 1:
                world.table.delete_item(TableName=world.table.name, Key={"pk": item["pk"], "sk": item["sk"]})
        now = int(world.clock())
        events: list[dict[str, Any]] = [
            {"shop": "s", "at": now + ahead, "id": len(sent) + n} for n, ahead in enumerate(new)
        ]
        events += sent[-again:] if again else []
        outcomes = processes[declared][process].accept_many(_DECLARED[declared], events)
        for event, outcome in zip(events, outcomes, strict=True):
            assert outcome.status in ("accepted", "duplicate", "too_late")
            if outcome.status == "accepted":
                assert event["id"] not in accepted, event
                accepted.add(event["id"])
        sent += events[: len(new)]
