"""Packed events are refused at the door where DynamoDB would refuse an item: a chunk would take them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Counters, Event, InvalidArgumentError, Packed, RejectedEventError
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable

_VIEW = Event("view", pk="URL#{url}", sk="T#{at}#N#{n}", packed=Packed("at"))


def _nested(levels: int, value: Any = "x") -> Any:
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


@pytest.fixture
def table() -> MemoryTable:
    return MemoryTable(VirtualClock(), 1, 1)


@pytest.fixture
def counters(table: Any) -> Counters:
    return Counters(table.name, client=table, clock=VirtualClock())


_BAD: dict[str, Any] = {
    "32 levels": _nested(32),
    "thousands of levels": _nested(5000),
    "an empty set": set(),
    "an empty set inside": [{"a": set()}],
    "an empty name": {"a": {"": 1}},
    "too small a number": Decimal("1E-131"),
    "a number of 39 digits inside": [Decimal(10**38 + 1)],
    "no number": Decimal("NaN"),
    "no exact float inside": {"a": [0.1 + 0.2]},
    "a lone surrogate inside": [{"\ud800": "x"}],
}


@pytest.mark.parametrize("bad", _BAD.values(), ids=_BAD)
def test_values_that_no_item_can_hold_are_rejected_and_their_neighbors_are_not(counters: Counters, bad: Any) -> None:
    at = int(counters._table.clock())
    views = [{"url": "/", "at": at, "n": n, "note": note} for n, note in enumerate(["x", bad, _nested(31)])]

    first, second, third = counters.accept_many(_VIEW, views)

    assert (first.status, second.status, third.status) == ("accepted", "rejected", "accepted")
    assert str(second.reason).startswith("invalid note=")
    assert sorted(view["n"] for view in counters.events(_VIEW)) == [0, 2]


@pytest.mark.parametrize("values", [None, 3, "url", [1]])
@pytest.mark.parametrize("packed", [_VIEW.packed, None], ids=["packed", "plain"])
def test_values_that_are_no_mapping_are_refused(counters: Counters, packed: Packed | None, values: Any) -> None:
    event = Event("view", pk=_VIEW.pk, sk=_VIEW.sk, packed=packed)

    with pytest.raises(RejectedEventError, match="invalid values="):
        counters.accept(event, values)
    with pytest.raises(InvalidArgumentError, match="invalid values="):
        counters.retract(event, values)


def test_a_call_without_events_asks_for_nothing(counters: Counters, table: MemoryTable) -> None:
    assert counters.accept_many(_VIEW, []) == []
    assert [outcome.status for outcome in counters.accept_many(_VIEW, [{}])] == ["rejected"]
    assert list(table.items()) == []
