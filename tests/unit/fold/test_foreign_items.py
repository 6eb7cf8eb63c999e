"""Items that other code writes: found by the form of their keys, counted by the fields in them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Attr, Count, Event, Items, Sum, TableKeys
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan, show_foreign
from dynamodb_counters._fold.records import Change
from tests.unit.fold.streams import NOW, TTL_IDENTITY, record

KEYS = TableKeys("PK", "SK", ttl="expiresAt")
ORDER = Items("order", pk="CUSTOMER#{customer}", sk="ORDER#{day}#{number}", keys=KEYS)
ORDERS = Aggregate("orders", ORDER, pk="CUSTOMER#{customer}", sk="DAY#{day}", measures={"n": Count()})

_TEXTS = st.text(max_size=5)
_KEYS = st.one_of(_TEXTS, st.builds("CUSTOMER#{}".format, _TEXTS), st.builds("CUSTOMER#{}#{}".format, _TEXTS, _TEXTS))


def order(pk: str = "CUSTOMER#ann", sk: str = "ORDER#mon#1", **more: Any) -> dict[str, Any]:
    return {"PK": {"S": pk}, "SK": {"S": sk}, **more}


def counted(declaration: Declaration, *records: dict[str, Any], is_foreign: bool = True) -> dict[Any, Any]:
    folded = fold(Plan((declaration,)), [Change(entry, is_foreign=is_foreign) for entry in records])
    assert folded.invalid == []
    return {delta.group: delta.measures for delta in folded.deltas if any(delta.measures.values())}


@given(_KEYS)
def test_a_key_has_the_fields_of_its_segments_or_does_not_match(key: str) -> None:
    show = show_foreign(Items("of", pk="CUSTOMER#{customer}", keys=KEYS))
    assert show is not None

    item = show({"PK": {"S": key}})

    first, *others = key.split("#")
    result = None if item is None else (item["customer"]["S"], item["PK"])
    assert result == ((others[0], {"S": key}) if first == "CUSTOMER" and len(others) == 1 else None)


@given(st.integers(-(10**12), 10**12) | st.just(10**37) | st.decimals(-100, 100, places=2), st.booleans())
def test_a_number_in_a_key_is_text_and_number(number: int | Decimal, in_string: bool) -> None:
    source = Items("reading", sk="V#{value}" if in_string else "{value}", keys=TableKeys("sensor", "at"))
    total = Aggregate("total", source, pk="ALL", sk="{value}", measures={"sum": Sum("value")})
    key = {"S": f"V#{number}"} if in_string else {"N": str(number)}

    sums = counted(total, record(1, {"sensor": {"B": "AA=="}, "at": key}))

    assert sums == ({(str(number),): {"sum": number}} if number else {})


@pytest.mark.parametrize("text", ["", "1e5", "٣", "1_000", " 1", "1.", "1" * 39])
def test_other_text_is_no_number(text: str) -> None:
    source = Items("i", pk="N#{n}", keys=TableKeys("id"))
    plan = Plan((Aggregate("a", source, pk="A", sk="S", measures={"sum": Sum("n")}),))
    folded = fold(plan, [Change(record(1, {"id": {"S": f"N#{text}"}}), is_foreign=True)])
    assert [image.reason for image in folded.invalid] == ["a: attribute 'n' is not a number"]


def test_fields_come_before_attributes_and_keys_of_another_type_do_not_match() -> None:
    assert counted(ORDERS, record(1, order(customer={"S": "bob"}))) == {("ann", "mon"): {"n": 1}}
    others = {"PK": {"B": "Q1VTVE9NRVIjYQ=="}}, {"PK": {"N": "1"}}, {"SK": {"S": "PROFILE"}}, {"SK": {"S": "ORDER#mon"}}
    for other in others:
        assert counted(ORDERS, record(1, order() | other)) == {}
    assert counted(ORDERS, record(1, {"PK": {"S": "CUSTOMER#ann"}})) == {}


@pytest.mark.parametrize(
    ("source", "attribute", "expected"),
    [
        (ORDER, "expiresAt", {}),
        (ORDER, "ttl", {(): {"n": -1}}),
        (Items("row", keys=TableKeys("PK", "SK")), "ttl", {(): {"n": -1}}),
    ],
)
def test_an_item_expires_by_the_ttl_of_its_own_table(source: Items, attribute: str, expected: dict[Any, Any]) -> None:
    aggregate = Aggregate("kept", source, pk="KEPT", sk="ALL", measures={"n": Count()})
    deletion = record(2, None, order() | {attribute: {"N": str(NOW - 10)}})
    assert counted(aggregate, deletion) == expected
    assert counted(replace(aggregate, on_expiry="subtract"), deletion) == {(): {"n": -1}}
    assert counted(aggregate, {**deletion, "userIdentity": TTL_IDENTITY}) == {}


USER = Items("User", where=Attr("_type").eq("User"))
USERS = Aggregate("users", USER, pk="USERS#{city}", sk="ALL", measures={"n": Count()})
CITY = Items("city", where=Attr("city").exists())
CITIES = Aggregate("cities", CITY, pk="CITY#{city}", sk="ALL", measures={"n": Count()})
VISIT = Event("visit", pk="VISIT#{id}", sk="VISIT")
VISITS = Aggregate("visits", VISIT, pk="VISITS", sk="ALL", measures={"n": Count()})


ANY = Items("any", where=Attr("_type").exists())
ANYTHING = Aggregate("anything", ANY, pk="ANY", sk="ALL", measures={"n": Count()})


def typed(number: int, kind: str, *, is_deleted: bool = False) -> dict[str, Any]:
    image = {"pk": {"S": "X"}, "sk": {"S": "Y"}, "_type": {"S": kind}, "city": {"S": "Bern"}}
    return record(number, None, image) if is_deleted else record(number, image)


def test_an_item_of_other_code_with_a_type_counts_where_its_items_name_the_type() -> None:
    plan = Plan((USERS, CITIES, VISITS))
    folded = fold(plan, [Change(typed(1, "User")), Change(typed(2, "Order"))])
    assert [(delta.layout.name, delta.measures) for delta in folded.deltas] == [("users", {"n": 1})]


@pytest.mark.parametrize("kind", ["visit#once", "users", "visits", "_checkpoint", "quarantine", "_quota"])
def test_no_item_of_ours_counts_in_items_whatever_they_say(kind: str) -> None:
    folded = fold(Plan((ANYTHING, USERS, CITIES, VISITS)), [Change(typed(1, kind))])
    assert [delta for delta in folded.deltas if delta.layout.name == "anything"] == []
    assert folded.skipped_types == {}


def test_types_that_nothing_declares_are_metered() -> None:
    plan = Plan((CITIES, VISITS))
    records = [typed(1, "User"), typed(2, "User"), typed(3, "Order"), typed(4, "Order", is_deleted=True)]
    elsewhere = record(5, {"pk": {"S": "X"}, "sk": {"S": "Y"}, "_type": {"S": "Note"}})
    folded = fold(plan, [Change(entry) for entry in (*records, elsewhere)])
    assert (folded.deltas, folded.skipped_types) == ([], {"User": 2, "Order": 2})
    # With a source table, Items lie there.
    apart = fold(plan, [Change(entry, is_foreign=False) for entry in records])
    assert apart.skipped_types == {}


def test_items_of_the_source_table_are_none_of_ours_and_the_other_way_round() -> None:
    event = Event("view", pk="URL#{url}", sk="T#{at}")
    views = Aggregate("views", event, pk="URL#{url}", sk="VIEWS", measures={"n": Count()})
    over = Aggregate("over", views, pk="OVER", sk="ALL", measures={"n": Sum("n")})
    group = {"pk": {"S": "URL#/"}, "sk": {"S": "VIEWS"}, "_type": {"S": "views"}, "n": {"N": "5"}}
    view = {"pk": {"S": "URL#/"}, "sk": {"S": "T#1"}, "_type": {"S": "view"}, "url": {"S": "/"}, "at": {"S": "1"}}
    declared = (views, over, ORDERS)
    # Only Items count the other code's items, whatever these look like; and they count nothing in our own table.
    foreign = [order() | group, order() | view, group, view]
    folded = fold(Plan(declared), [Change(record(n, item), is_foreign=True) for n, item in enumerate(foreign, 1)])
    assert {delta.layout.name: delta.measures for delta in folded.deltas} == {"orders": {"n": 2}}
    own = enumerate((group, view, order()), 1)
    folded = fold(Plan(declared), [Change(record(n, item), is_foreign=False) for n, item in own])
    assert {delta.layout.name: delta.measures for delta in folded.deltas} == {"over": {"n": 5}, "views": {"n": 1}}
