"""Sums over the members of a list: each member in its own group, exact under corrections and deletions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Attr, Average, Count, Event, InvalidArgumentError, Sum, Window
from dynamodb_counters.testing import QuarantinedRecordsError, counters_in_memory
from tests.unit.fold.world import World

ORDER = Event("order", pk="ORDER#{id}", sk="ORDER", version="revision")
SOLD = Aggregate(
    "sold",
    ORDER,
    pk="SHOP#{shop}",
    sk="SKU#{lines[].sku}",
    measures={"orders": Count(), "quantity": Sum("lines[].quantity"), "mean": Average("lines[].quantity")},
)
TOTAL = Aggregate("total", ORDER, pk="ALL", sk="ALL", measures={"orders": Count(), "n": Sum("lines[].quantity")})


def order(*lines: tuple[str, int], number: int = 1, revision: int = 1) -> dict[str, Any]:
    listed = [{"sku": sku, "quantity": quantity} for sku, quantity in lines]
    return {"id": str(number), "shop": "a", "revision": revision, "lines": listed}


_LINES = st.lists(st.tuples(st.sampled_from("xyz"), st.integers(-2, 3)), max_size=4)


@given(st.lists(st.tuples(st.integers(1, 3), _LINES), max_size=8), st.sets(st.integers(1, 3)))
def test_corrections_and_deletions_are_exact(
    written: list[tuple[int, list[tuple[str, int]]]], deleted: set[int]
) -> None:
    world = World([SOLD, TOTAL])
    current: dict[int, list[tuple[str, int]]] = {}
    for revision, (number, lines) in enumerate(written):
        world.put(ORDER, order(*lines, number=number, revision=revision))
        current[number] = lines
    for number in deleted & current.keys():
        world.counters.retract(ORDER, {"id": str(number)})
        del current[number]
    world.settle()

    quantities: Counter[str] = Counter()
    orders: Counter[str] = Counter()
    for lines in current.values():
        orders.update({sku for sku, _ in lines})
        for sku, quantity in lines:
            quantities[sku] += quantity
    for sku in "xyz":
        group = world.counters.get(SOLD, {"shop": "a", "lines[].sku": sku})
        assert (group["orders"], group["quantity"]) == (orders[sku], quantities[sku])
    total = world.counters.get(TOTAL, {})
    assert (total["orders"], total["n"]) == (len(current), sum(quantities.values()))


@pytest.mark.parametrize(
    "wrong",
    [{"lines": "x"}, {"lines": ["x"]}, {"lines": [{"quantity": 1}]}, {"lines": [{"sku": "x", "quantity": "1"}]}],
)
def test_values_that_are_no_list_of_such_maps_cannot_be_counted(wrong: dict[str, Any]) -> None:
    with pytest.raises(QuarantinedRecordsError, match="attribute '"), counters_in_memory([SOLD]) as counters:
        counters.accept(ORDER, {**order(), **wrong})


def test_lines_of_too_many_groups_cannot_be_counted() -> None:
    few = Aggregate("few", ORDER, pk="F", sk="{lines[].sku}", measures={"n": Count()}, max_groups=2)

    found = "expected at most 2 groups of 'few' per item, found 3"
    with pytest.raises(QuarantinedRecordsError, match=found), counters_in_memory([few]) as counters:
        counters.accept(ORDER, order(("x", 1), ("y", 1), ("z", 1)))


def test_members_that_cannot_be_declared_are_refused() -> None:
    two: dict[str, Any] = {"pk": "A#{lines[].sku}", "sk": "ALL"}
    with pytest.raises(InvalidArgumentError, match=r"invalid measures='tags\[\].n': expected no other list next to"):
        Aggregate("a", ORDER, **two, measures={"n": Sum("tags[].n")})
    with pytest.raises(InvalidArgumentError, match=r"invalid pk='tags\[\]': expected no other list next to"):
        Aggregate("a", ORDER, pk="A#{lines[].sku}", sk="{tags[]}", measures={"n": Count()})
    with pytest.raises(InvalidArgumentError, match=r"invalid measure='lines\[\].n': expected an attribute of the item"):
        Window("w", ORDER, pk="W", time="at", measure=Sum("lines[].n"))
    with pytest.raises(InvalidArgumentError, match=r"invalid where='lines\[\].sku': expected an attribute of the item"):
        Aggregate("a", ORDER, **two, measures={"n": Count()}, where=Attr("lines[].sku").eq("x"))
    with pytest.raises(InvalidArgumentError, match="fields that are not lists; an Aggregate counts each member"):
        Window("w", ORDER, pk="W#{lines[].sku}", time="at")


@dataclass
class Line:
    sku: str
    quantity: int


def test_lines_are_checked_by_the_events_attributes() -> None:
    attributes = {"id": str, "lines": list[Line], "tags": list[str]}
    typed = Event("typed", pk="O#{id}", sk="O", attributes=attributes)
    quantity = Sum("lines[].quantity")

    assert Aggregate("a", typed, pk="A#{lines[].sku}", sk="A", measures={"n": quantity}).fields == ("lines[].sku",)
    with pytest.raises(InvalidArgumentError, match=r"invalid pk='lines\[\].sky': expected attributes of 'lines': sku"):
        Aggregate("a", typed, pk="A#{lines[].sky}", sk="A", measures={"n": quantity})
    with pytest.raises(InvalidArgumentError, match=r"invalid pk='tags\[\].sku': expected a part of a map"):
        Aggregate("a", typed, pk="A#{tags[].sku}", sk="A", measures={"n": Count()})
