"""Another payload under a known key is no repetition but a conflict, with the stored event, at no cost by default."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Event, Packed
from dynamodb_counters._writes.accept import differing
from dynamodb_counters._writes.event_items import typed_item
from simulation.clock import EPOCH
from tests.unit.writes.conftest import Site

_ORDER = Event("order", pk="SHOP#{shop}", sk="ORDER#{id}", retention=timedelta(days=1))
_REVISED = Event("revised", pk="SHOP#{shop}", sk="ORDER#{id}", version="revision")
_PACKED = Event("packed", pk="SHOP#{shop}", sk="ORDER#{at}#{id}", packed=Packed(time="at"))
_ORDERS = Aggregate("orders", _ORDER, pk="SHOP#{shop}", sk="N", measures={"n": Count()})


def _order(number: int = 1, **values: Any) -> dict[str, Any]:
    return {"shop": "x", "id": number, "at": int(EPOCH), **values}


def _statuses(outcomes: Any) -> list[str]:
    return [outcome.status for outcome in outcomes]


def test_one_event_meets_what_is_stored_by_one_put(site: Site, counters: Counters) -> None:
    counters.accept(_ORDER, _order(total=5, note="a"))
    site.clock.advance(60)
    before = site.table.usage.calls

    assert counters.accept(_ORDER, _order(total=Decimal("5.00"), note="a")).status == "duplicate"
    outcome = counters.accept(_ORDER, _order(total=6, note="a", currency="EUR"))

    assert outcome.status == "conflict"
    assert outcome.reason == "the stored event of this key differs in 'currency', 'total'"
    assert outcome.stored == _order(total=5, note="a")
    assert site.table.usage.calls == before + 2
    assert [item["total"] for item in site.table.items()] == [{"N": "5"}]


def test_conflicts_of_a_transaction_are_returned_too(counters: Counters) -> None:
    counters.record_once(_ORDER, _order(total=5), [_ORDERS])

    outcomes = [counters.record_once(_ORDER, _order(total=total), [_ORDERS]) for total in (5, 6)]
    alone = counters.accept(_ORDER, _order(total=6))

    assert _statuses(outcomes) == ["duplicate", "conflict"]
    assert outcomes[1].stored == alone.stored == _order(total=5)


def test_events_of_a_call_are_compared_with_each_other_and_with_what_is_stored(counters: Counters) -> None:
    orders = [_order(total=total) for total in (5, 5, 6)]

    outcomes = counters.accept_many(_ORDER, orders)

    assert _statuses(outcomes) == ["accepted", "duplicate", "conflict"]
    assert outcomes[2].stored == orders[0]
    assert _statuses(counters.accept_many(_ORDER, orders)) == ["duplicate", "duplicate", "conflict"]


def test_an_event_is_taken_though_another_of_its_key_cannot_be(counters: Counters) -> None:
    orders = [_order(note="x" * 500_000), _order(note="x")]

    assert _statuses(counters.accept_many(_ORDER, orders)) == ["rejected", "accepted"]


def test_an_older_version_is_a_repetition_and_another_payload_of_the_same_a_conflict(counters: Counters) -> None:
    counters.accept(_REVISED, _order(revision=2, total=5))

    drawn = [(1, 4), (2, 5), (2, 6), (3, 7)]
    orders = [_order(revision=revision, total=total) for revision, total in drawn]

    assert _statuses(counters.accept_many(_REVISED, orders)) == ["duplicate", "duplicate", "conflict", "accepted"]


def test_payloads_of_packed_events_are_not_compared(counters: Counters) -> None:
    orders = [_order(total=total) for total in (5, 6)]

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
