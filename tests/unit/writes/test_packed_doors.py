"""Packed events at the door and over any history: what is refused, what one chunk takes, and what a log comes to."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

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


_PACKED = Packed("at", timedelta(minutes=10), parts=3, partition_by="shop", chunk_bytes=1024)
_SPREAD_SALE = Event("sale", pk="SHOP#{shop}", sk="T#{at}#{till}", packed=_PACKED)

_KEYS = st.one_of(
    st.text(alphabet="#%~\0\x7f\n 2350é\u0301\U0001f600", max_size=4),
    st.sampled_from(["", "#", "%", "%~", "%23", "e\u0301", "é", "a" * 3000, "a" * 2999 + "b", "1"]),
    st.sampled_from([1, 0, -1, Decimal("1.0"), Decimal("1.50"), Decimal("1E+2"), Decimal("-0"), 10**37]),
)
_WHOLE = st.integers(-(10**37), 10**37)
_NOTES = st.one_of(st.none(), st.text(max_size=20), st.binary(max_size=300), _WHOLE, st.sets(_WHOLE, min_size=1))
_SALES = st.fixed_dictionaries({"shop": _KEYS, "till": _KEYS, "at": st.sampled_from([0, 0, 599, 600]), "note": _NOTES})


def _live(site: Site) -> list[dict[str, Any]]:
    """The events that a log comes to, by its signs."""
    live: list[dict[str, Any]] = []
    for item in sorted(site.table.items(), key=lambda item: (item["pk"]["S"], item["sk"]["S"])):
        for row in decode_chunk(item["_chunk"]).all_rows() if "_chunk" in item else []:
            if row.sign == "+":
                live.append(dict(row.values))
            elif row.sign == "-":
                live.remove(dict(row.values))
    return live


def _key(sale: dict[str, Any]) -> tuple[str, str]:
    return _SPREAD_SALE._pk_template.render(sale), _SPREAD_SALE._sk_template.render(sale)


@given(
    st.lists(
        st.tuples(st.sampled_from(["accept", "accept", "retract"]), st.integers(0, 2), st.lists(_SALES, max_size=5)),
        max_size=10,
    )
)
def test_any_history_comes_to_what_a_dict_comes_to(history: list[tuple[str, int, list[dict[str, Any]]]]) -> None:
    site, number = Site(), count()
    site.table.page_items = 2
    begin = int(site.clock()) // 600 * 600 - 600
    processes = [site.process() for _ in range(3)]
    there: dict[tuple[str, str], dict[str, Any] | None] = {}
    for act, index, drawn in history:
        sales = [{**sale, "at": begin + sale["at"], "n": next(number)} for sale in drawn]
        if act == "retract":
            for sale in sales:
                # Only the key decides which one is meant.
                told = processes[index].retract(_SPREAD_SALE, {**sale, "note": "?"})
                assert told == (there.get(_key(sale)) is not None)
                there[_key(sale)] = None
            continue
        wanted = []
        for sale in sales:
            wanted.append("duplicate" if _key(sale) in there else "accepted")
            there.setdefault(_key(sale), sale)
        outcomes = processes[index].accept_many(_SPREAD_SALE, sales)
        assert [outcome.status for outcome in outcomes] == wanted

    live = [sale for sale in there.values() if sale is not None]
    assert sorted(int(row["n"]["N"]) for row in _live(site)) == sorted(sale["n"] for sale in live)
    assert {outcome.status for outcome in site.process().accept_many(_SPREAD_SALE, live)} <= {"duplicate"}
