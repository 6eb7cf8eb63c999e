"""Packed events at the door, in a layout of their own, and larger than a chunk: refused where no chunk takes them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from dynamodb_counters import Counters, Event, InvalidArgumentError, Packed, RejectedEventError
from dynamodb_counters._items.chunks import decode_chunk
from dynamodb_counters._items.table_schema import LAYOUT
from dynamodb_counters._layouts import Layouts
from dynamodb_counters._table import Table
from simulation.faults.hooked_client import HookedClient, once
from tests.unit.writes.conftest import Site

_VIEW = Event("view", pk="URL#{url}", sk="T#{at}#N#{n}", packed=Packed("at"))
_SALE: Final = Event("sale", pk="SHOP#{shop}", sk="T#{at}#{id}", packed=Packed("at"))
_LARGE_SALE = Event("sale", pk="SALE#{id}", sk="T#{at}", packed=Packed("at"))
_NOISE = random.Random(1).randbytes(250_000).hex()
"""Hexadecimal digits: 1,800 take a kilobyte, compressed."""


def _nested(levels: int, value: Any = "x") -> Any:
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


_BAD: dict[str, Any] = {
    "32 levels": _nested(32),
    "thousands of levels": _nested(5000),
    "an empty set inside": [{"a": set()}],
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


def test_a_call_without_events_asks_for_nothing(site: Site, counters: Counters) -> None:
    assert counters.accept_many(_VIEW, []) == []
    assert [outcome.status for outcome in counters.accept_many(_VIEW, [{}])] == ["rejected"]
    assert list(site.table.items()) == []


@pytest.mark.parametrize("is_same", [False, True])
def test_of_two_processes_that_begin_at_a_time_one_has_the_layout(site: Site, is_same: bool) -> None:
    memory = site.table
    other = _SALE if is_same else replace(_SALE, packed=Packed("at", parts=2))
    first = Layouts(Table(memory.name, memory))
    client: Any = HookedClient(memory, once(["put_item"], lambda: first.require(other, puts=True)))
    second = Layouts(Table(memory.name, client))

    if is_same:
        second.require(_SALE, puts=True)
        assert len(list(memory.items())) == 1
    else:
        with pytest.raises(InvalidArgumentError):
            second.require(_SALE, puts=True)
        first.require(other)


def test_who_only_reads_puts_no_layout(site: Site) -> None:
    assert list(site.process().events(_SALE)) == []
    assert list(site.table.items()) == []


def test_a_layout_that_cannot_be_read_now_fails_the_events_and_no_more(site: Site) -> None:
    def throttle(_: str, send: Any, request: dict[str, Any]) -> Any:
        if LAYOUT in str(request):
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "PutItem")
        return send()

    events = [{"shop": "s", "at": int(site.clock()), "id": number} for number in range(2)]
    outcomes = site.process(throttle).accept_many(_SALE, events)
    assert [outcome.status for outcome in outcomes] == ["failed", "failed"]
    assert site.process().accept(_SALE, events[0]).status == "accepted"


def _sale(counters: Counters, kilobytes: int, number: str = "1") -> dict[str, Any]:
    return {"id": number, "at": int(counters._table.clock()), "noise": _NOISE[: 1800 * kilobytes]}


def _signs(site: Site) -> list[str]:
    return [decode_chunk(item["_chunk"]).signs for item in site.table.items() if "_chunk" in item]


def test_an_event_larger_than_a_chunk_has_one_of_its_own(site: Site, counters: Counters) -> None:
    sales = [_sale(counters, size, str(size)) for size in (1, 1, 50, 1, 2)]

    outcomes = [outcome.status for outcome in counters.accept_many(_LARGE_SALE, [*sales[:1], *sales[2:]])]

    assert outcomes == ["accepted", "accepted", "duplicate", "accepted"]
    assert [decode_chunk(item["_chunk"]).rows for item in site.table.items() if "_chunk" in item] == [1, 1, 1]


def test_the_largest_event_can_be_retracted(site: Site, counters: Counters) -> None:
    assert counters.accept(_LARGE_SALE, _sale(counters, 185)).status == "accepted"
    assert counters.retract(_LARGE_SALE, _sale(counters, 0))
    assert _signs(site) == ["", "-"]


def test_one_that_is_too_large_is_rejected_and_no_other(site: Site, counters: Counters) -> None:
    first, other = counters.accept_many(_LARGE_SALE, [_sale(counters, 195), _sale(counters, 1, "2")])

    assert first.status == "rejected"
    assert "at most 190 KB" in str(first.reason)
    assert other.status == "accepted"
    assert _signs(site) == [""]
