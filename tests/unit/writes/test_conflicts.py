"""Another payload under a known key is no repetition but a conflict, with the stored event, at no cost by default."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Event, Packed
from dynamodb_counters._writes.accept import differing
from dynamodb_counters._writes.event_items import typed_item
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable
from tests.unit.writes.clients import FaultyClient

_ORDER = Event("order", pk="SHOP#{shop}", sk="ORDER#{id}", retention=timedelta(days=1))
_REVISED = Event("revised", pk="SHOP#{shop}", sk="ORDER#{id}", version="revision")
_PACKED = Event("packed", pk="SHOP#{shop}", sk="ORDER#{at}#{id}", packed=Packed(time="at"))
_ORDERS = Aggregate("orders", _ORDER, pk="SHOP#{shop}", sk="N", measures={"n": Count()})


class _Shop:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.table = MemoryTable(self.clock, 1, 1)
        self.client: Any = FaultyClient(self.table)  # type: ignore[arg-type]

    def counters(self) -> Counters:
        return Counters(self.table.name, client=self.client, clock=self.clock)

    def order(self, number: int = 1, **values: Any) -> dict[str, Any]:
        return {"shop": "x", "id": number, "at": int(self.clock()), **values}

    def calls(self) -> list[str]:
        """The names of the calls since the last time, but for those that read what a process remembers."""
        names = [name for name, _ in self.client.calls if name != "query"]
        self.client.calls.clear()
        return names


@pytest.fixture
def shop() -> _Shop:
    return _Shop()


def _statuses(outcomes: Any) -> list[str]:
    return [outcome.status for outcome in outcomes]


def test_one_event_meets_what_is_stored_by_one_put(shop: _Shop) -> None:
    counters = shop.counters()
    counters.accept(_ORDER, shop.order(total=5, note="a"))
    shop.clock.advance(60)
    again = {**shop.order(total=Decimal("5.00"), note="a"), "at": shop.order()["at"] - 60}
    shop.calls()

    assert counters.accept(_ORDER, again).status == "duplicate"
    outcome = counters.accept(_ORDER, {**again, "total": 6, "currency": "EUR"})

    assert outcome.status == "conflict"
    assert outcome.reason == "the stored event of this key differs in 'currency', 'total'"
    assert outcome.stored == {**again, "total": 5}
    assert shop.calls() == ["put_item"] * 2
    assert [item["total"] for item in shop.table.items()] == [{"N": "5"}]


def test_conflicts_of_a_transaction_are_returned_too(shop: _Shop) -> None:
    counters = shop.counters()
    counters.record_once(_ORDER, shop.order(total=5), [_ORDERS])

    outcomes = [counters.record_once(_ORDER, shop.order(total=total), [_ORDERS]) for total in (5, 6)]
    alone = counters.accept(_ORDER, shop.order(total=6))

    assert _statuses(outcomes) == ["duplicate", "conflict"]
    assert outcomes[1].stored == alone.stored == shop.order(total=5)


def test_events_of_a_call_are_compared_with_each_other_and_with_what_is_stored(shop: _Shop) -> None:
    orders = [shop.order(total=total) for total in (5, 5, 6)]

    outcomes = shop.counters().accept_many(_ORDER, orders)

    assert _statuses(outcomes) == ["accepted", "duplicate", "conflict"]
    assert outcomes[2].stored == orders[0]
    assert _statuses(shop.counters().accept_many(_ORDER, orders)) == ["duplicate", "duplicate", "conflict"]


def test_an_event_is_taken_though_another_of_its_key_cannot_be(shop: _Shop) -> None:
    orders = [shop.order(note="x" * 500_000), shop.order(note="x")]

    assert _statuses(shop.counters().accept_many(_ORDER, orders)) == ["rejected", "accepted"]


def test_an_older_version_is_a_repetition_and_another_payload_of_the_same_a_conflict(shop: _Shop) -> None:
    counters = shop.counters()
    counters.accept(_REVISED, shop.order(revision=2, total=5))

    drawn = [(1, 4), (2, 5), (2, 6), (3, 7)]
    orders = [shop.order(revision=revision, total=total) for revision, total in drawn]

    assert _statuses(counters.accept_many(_REVISED, orders)) == ["duplicate", "duplicate", "conflict", "accepted"]


def test_payloads_of_packed_events_are_not_compared(shop: _Shop) -> None:
    counters = shop.counters()
    orders = [shop.order(total=total) for total in (5, 6)]

    for statuses in (["accepted", "duplicate"], ["duplicate", "duplicate"]):
        assert _statuses(counters.accept_many(_PACKED, orders)) == statuses


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (1, Decimal("1.00"), True),
        ("1", 1, False),
        (True, 1, False),
        ([1, {"a": Decimal("2.0")}], [Decimal(1), {"a": 2}], True),
        ([1, {"a": 2}], [1, {"a": 3}], False),
        ([True], [1], False),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ({"a", "b"}, {"b", "a"}, True),
        ({1, 2}, {Decimal("1.0"), 2}, True),
        (b"a", b"a", True),
        (b"a", b"b", False),
        (None, False, False),
    ],
)
def test_payloads_are_the_same_if_dynamodb_stores_them_alike(one: Any, other: Any, *, is_same: bool) -> None:
    images = [typed_item(_ORDER, {"shop": "x", "id": 1, "value": value}) for value in (one, other)]

    assert differing(_ORDER, *images) == ([] if is_same else ["value"])
