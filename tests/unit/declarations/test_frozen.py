"""Declarations are values: they never change, have a hash, and show all that is said in them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Distinct, Event, Hierarchy, Histogram, Quota, Sum, Window

_WEEK = timedelta(days=7)
_VIEW = Event("view", pk="URL#{url}", sk="T#{time}", attributes={"url": str, "time": str, "bytes": int})
_VIEWS = Aggregate(
    "views",
    _VIEW,
    pk="URL#{url}",
    sk="DAY#{time:day}",
    measures={"n": Count(), "sizes": Histogram("bytes", bounds=[0, 9])},
    where=Attr("bytes").gt(1),
    retention=_WEEK,
)
_LEVELS = Hierarchy("all", _VIEW, pk="ALL", levels={"site": "SITE", "url": "URL#{url}"}, measures={"n": Count()})
_DECLARED: list[Any] = [
    _VIEW,
    _VIEWS,
    Window("recent", _VIEW, pk="URL#{url}", time="time", measure=Sum("bytes"), tiers=("hour", "day")),
    Distinct("visitors", _VIEW, pk="URL#{url}", sk="DAY#{time:day}", member="bytes", retention=_WEEK),
    _LEVELS,
    Quota("calls", limit=5, per="day", by=("customer",)),
]


@pytest.mark.parametrize("declared", _DECLARED, ids=lambda each: type(each).__name__)
def test_a_declaration_has_the_hash_of_its_equals(declared: Any) -> None:
    for other in (replace(declared), copy.deepcopy(declared), pickle.loads(pickle.dumps(declared))):
        assert {other: 1}[declared] == 1
    assert hash(replace(declared, name="other")) != hash(declared)


@pytest.mark.parametrize(
    ("declared", "name"),
    [(_VIEW, "attributes"), (_VIEWS, "measures"), (_LEVELS, "measures"), (_LEVELS, "levels")],
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


def test_a_declaration_shows_its_retention_and_its_attributes() -> None:
    for declared in (_VIEWS, _DECLARED[3]):
        assert f"retention={_WEEK!r}" in repr(declared)
    assert "attributes={'url': Attribute(type=<class 'str'>)" in repr(_VIEW)
