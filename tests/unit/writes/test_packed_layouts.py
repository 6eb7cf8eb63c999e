"""The item with the layout of packed events, while it is put and read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from dynamodb_counters import Counters, Event, Packed
from dynamodb_counters._items.table_schema import LAYOUT
from dynamodb_counters._layouts import Layouts
from dynamodb_counters._table import Table
from dynamodb_counters.errors import LayoutError
from simulation.clock import VirtualClock
from simulation.faults.hooked_client import HookedClient, once
from simulation.memory_table import MemoryTable

_SALE: Final = Event("sale", pk="SHOP#{shop}", sk="T#{at}#{id}", packed=Packed("at"))


@pytest.mark.parametrize("is_same", [False, True])
def test_of_two_processes_that_begin_at_a_time_one_has_the_layout(is_same: bool) -> None:
    memory: Any = MemoryTable(VirtualClock())
    other = _SALE if is_same else replace(_SALE, packed=Packed("at", parts=2))
    first = Layouts(Table(memory.name, memory))
    client: Any = HookedClient(memory, once(["put_item"], lambda: first.require(other, puts=True)))
    second = Layouts(Table(memory.name, client))

    if is_same:
        second.require(_SALE, puts=True)
        assert len(list(memory.items())) == 1
    else:
        with pytest.raises(LayoutError):
            second.require(_SALE, puts=True)
        first.require(other)


def test_who_only_reads_puts_no_layout() -> None:
    memory: Any = MemoryTable(VirtualClock())
    assert list(Counters(memory.name, client=memory).events(_SALE)) == []
    assert list(memory.items()) == []


def test_a_layout_that_cannot_be_read_now_fails_the_events_and_no_more() -> None:
    clock = VirtualClock()
    table: Any = MemoryTable(clock)

    def throttle(_: str, send: Any, request: dict[str, Any]) -> Any:
        if LAYOUT in str(request):
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "PutItem")
        return send()

    client: Any = HookedClient(table, throttle)
    events = [{"shop": "s", "at": int(clock()), "id": number} for number in range(2)]
    outcomes = Counters(table.name, client=client, clock=clock).accept_many(_SALE, events)
    assert [outcome.status for outcome in outcomes] == ["failed", "failed"]
    assert Counters(table.name, client=table, clock=clock).accept(_SALE, events[0]).status == "accepted"
