"""Declarations are values: they never change, have a hash, and show all that is said in them."""

from __future__ import annotations

import copy
import datetime as datetime_module
import pickle
import zoneinfo
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import pytest

import dynamodb_counters
from dynamodb_counters import (
    Aggregate,
    Attr,
    Attribute,
    Average,
    Condition,
    Count,
    Counter,
    Distinct,
    Event,
    Histogram,
    Items,
    Packed,
    Quota,
    Ranking,
    Sum,
    TableKeys,
    Window,
)


@dataclass
class _Inner:
    size: int


_WEEK = timedelta(days=7)
_VIEW = Event("view", pk="URL#{url}", sk="T#{time}", attributes={"url": str, "time": datetime, "bytes": int})
_VIEWS = Aggregate(
    "views",
    _VIEW,
    pk="URL#{url}",
    sk="DAY#{time:day}",
    measures={"n": Count(), "sizes": Histogram("bytes", bounds=[0, 9])},
    where=Attr("bytes").gt(1),
    retention=_WEEK,
)
_DECLARED: list[Any] = [
    _VIEW,
    _VIEWS,
    Window("recent", _VIEW, pk="URL#{url}", time="time", measure=Sum("bytes"), longest=timedelta(days=30)),
    Distinct("visitors", _VIEW, pk="URL#{url}", sk="DAY#{time:day}", member="bytes", retention=_WEEK),
    Counter("stock", by=("sku", "at:day"), left=Count(), ranking=Ranking("left", "SKUS"), retention=_WEEK),
    Quota("calls", limit=5, per="day", by=("customer",)),
]


@pytest.mark.parametrize("declared", _DECLARED, ids=lambda each: type(each).__name__)
def test_a_declaration_has_the_hash_of_its_equals(declared: Any) -> None:
    for other in (replace(declared), copy.deepcopy(declared), pickle.loads(pickle.dumps(declared))):
        assert {other: 1}[declared] == 1
    assert hash(replace(declared, name="other")) != hash(declared)


@pytest.mark.parametrize(
    ("declared", "name"),
    [(_VIEW, "attributes"), (_VIEWS, "measures")],
)
def test_a_declaration_does_not_change(declared: Any, name: str) -> None:
    held = getattr(declared, name)
    before = dict(held)
    changes: list[Any] = [
        lambda: held.update(before),
        lambda: held.__setitem__("more", Count()),
        lambda: held.__delitem__(next(iter(before))),
        lambda: held.__ior__(before),
        lambda: held.setdefault("more", 1),
        held.clear,
        held.popitem,
        lambda: held.pop("n", None),
    ]
    for change in changes:
        with pytest.raises(TypeError, match=r"dataclasses\.replace"):
            change()
    given = dict(before)
    changed = replace(declared, **{name: given})
    given.clear()
    assert changed == declared
    assert getattr(declared, name) == before


_SHOWN: list[Any] = [
    *_DECLARED,
    Event("typed", key="id", version="id", attributes={"id": str, "n": list[Literal[1, 2]], "m": Attribute(_Inner)}),
    Event("hit", key=("page", "at"), packed=Packed("at")),
    Aggregate(
        "top",
        Items("order", where=Attr("n").between(1, Decimal("1.5")), pk="C#{c}", keys=TableKeys("PK", "SK")),
        by="c",
        measures={"n": Sum("n", cap=Decimal(2)), "m": Average("m")},
        ranking=Ranking("n", "ALL"),
    ),
    Quota("hours", limit=5, per=_WEEK, tz=zoneinfo.ZoneInfo("Europe/Berlin")),
]


@pytest.mark.parametrize("declared", _SHOWN, ids=lambda each: each.name)
def test_the_repr_of_a_declaration_is_a_call_that_makes_it(declared: Any) -> None:
    names = {"datetime": datetime_module, "zoneinfo": zoneinfo, "Decimal": Decimal}
    names |= {name: getattr(dynamodb_counters, name) for name in dynamodb_counters.__all__}

    assert eval(repr(declared), names) == declared


def test_the_mappings_and_sequences_in_an_attribute_do_not_change() -> None:
    given: dict[str, Any] = {"a": str}
    attribute = Attribute(dict, attributes={"b": Attribute(dict, attributes=given)})
    given["c"] = int

    assert attribute == Attribute(dict, attributes={"b": Attribute(dict, attributes={"a": str})})
    assert hash(attribute) == hash(copy.deepcopy(attribute))
    with pytest.raises(TypeError, match=r"dataclasses\.replace"):
        attribute.attributes["b"].attributes.clear()
    assert hash(Condition("eq", "a", [1])) == hash(Attr("a").eq(1))  # type: ignore[arg-type]
