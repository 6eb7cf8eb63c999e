"""Images that a declaration cannot fold wait in quarantine for it: they fail no batch, and the others count."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, Sum, Window
from dynamodb_counters._fold.fold import Delta, fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from tests.unit.fold.streams import NOW, Image, Record, image, record

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_DECLARATIONS = (
    Aggregate("all", _VIEW, pk="ALL", sk="ALL", measures={"n": Count()}),
    Aggregate("by", _VIEW, pk="URL#{url}", sk="S", measures={"n": Count(), "b": Sum("bytes")}),
    Window("recent", _VIEW, pk="URL#{url}", time="at"),
    Window("ever", _VIEW, pk="EVER", time="at", future_tolerance=None, where=Attr("bytes").ge(0)),
    Aggregate("last", _VIEW, pk="LAST", sk="LAST", measures={"n": Count()}),
)
_PLAN = Plan(_DECLARATIONS)

_GOOD = image("view", url="/", bytes=1, at=NOW)


def _with(**attributes: Any) -> Image:
    return {**_GOOD, **attributes}


def _without(name: str) -> Image:
    return {key: value for key, value in _GOOD.items() if key != name}


IMAGES: dict[str, Any] = {
    "no group": _without("url"),
    "no number": _without("bytes"),
    "no time": _without("at"),
    "number is text": _with(bytes={"S": "1"}),
    "number is no number": _with(bytes={"N": "one"}),
    "number is no text": _with(bytes={"N": ["1"]}),
    "number has too many digits": _with(bytes={"N": "1." + "1" * 400}),
    "whole number has a digit too many": _with(bytes={"N": "1" * 39}),
    "whole number is longer than Python reads": _with(bytes={"N": "1" * 5000}),
    "group is a flag": _with(url={"BOOL": True}),
    "group is untyped": _with(url="/"),
    "group is nothing": _with(url=None),
    "time is naive": _with(at={"S": "2026-11-20T10:00:00"}),
    "time is far ahead": _with(at={"N": str(NOW + 86400)}),
    "type is untyped": {**_GOOD, "_type": "view"},
    "type is a list": {**_GOOD, "_type": {"S": ["view"]}},
    "image is text": "view",
}


@pytest.mark.parametrize("kind", IMAGES)
@pytest.mark.parametrize("place", ["inserted", "corrected to", "corrected from", "both", "deleted"])
def test_a_malformed_image_waits_for_those_that_cannot_fold_it(kind: str, place: str) -> None:
    bad = IMAGES[kind]
    new, old, also = {
        "inserted": (bad, None, []),
        "corrected to": (bad, _GOOD, [record(2, None, _GOOD)]),
        "corrected from": (_GOOD, bad, [record(2, _GOOD)]),
        "both": (bad, bad, []),
        "deleted": (None, bad, []),
    }[place]
    malformed = record(2, new, old)
    around = [record(1, _GOOD), record(3, _GOOD)]

    folded = fold(_PLAN, changes_of([around[0], malformed, around[1]]))

    sides = [side for side, image in (("NewImage", new), ("OldImage", old)) if image is bad]
    assert [(int(held.sequence), held.image_name) for held in folded.unfoldable] == [(2, side) for side in sides]
    [names] = {held.names for held in folded.unfoldable}
    for held in folded.unfoldable:
        assert all(f"{name}: " in held.reason for name in names)
        assert [name for name in ("NewImage", "OldImage") if name in held.record["dynamodb"]] == [held.image_name]
    for declaration in _DECLARATIONS:
        # As if there were no other. The other image of the record counts as it would alone.
        counted = also if not names or declaration.name in names else [malformed]
        alone = fold(Plan((declaration,)), changes_of([around[0], *counted, around[1]]))
        assert not alone.unfoldable
        assert _contents(folded.deltas, declaration.name) == _contents(alone.deltas, declaration.name)
    for delta in folded.deltas:
        assert delta.layout.key(delta.group, "shard")


def _contents(deltas: list[Delta], name: str) -> list[Any]:
    return [(d.group, d.first, d.last, d.measures) for d in deltas if d.layout.name == name]


@pytest.mark.parametrize("change", [{}, {"Keys": {"pk": {"S": "x"}}}, {"NewImage": None}, {"OldImage": None}])
def test_a_record_without_images_goes_to_quarantine(change: dict[str, Any]) -> None:
    bare: Record = {"eventName": "INSERT", "dynamodb": {"SequenceNumber": "2", **change}}

    folded = fold(_PLAN, changes_of([bare, record(3, _GOOD)]))

    assert [int(held.sequence) for held in folded.unfoldable] == [2]
    assert all(delta.measures for delta in folded.deltas)


def test_images_that_the_filter_leaves_out_need_not_be_well_formed() -> None:
    plan = Plan((Aggregate("s", _VIEW, pk="S", sk="S", measures={"b": Sum("bytes")}, where=Attr("bytes").ge(0)),))

    assert fold(plan, changes_of([record(1, _without("bytes"))])).unfoldable == []
