"""Limits of what one image may ask of the table, and of what a batch does: one update a touched group and bucket."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Window
from dynamodb_counters._declarations import flatten
from dynamodb_counters._fold import contributions
from dynamodb_counters._fold.contributions import MAX_GROUP_BYTES
from dynamodb_counters._fold.fold import Folded, fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change, changes_of
from dynamodb_counters._fold.updates import Update
from dynamodb_counters.exactly_once import Watermark
from tests.cpu_time import cpu_seconds_below
from tests.unit.fold.buckets import JOB
from tests.unit.fold.buckets import fold as fold_window
from tests.unit.fold.streams import NOW, Image, image, record

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_BY_URL = Aggregate("by_url", _VIEW, pk="URL#{url}", sk="S", measures={"n": Count()})
_BY_TAGS = Aggregate("by_tags", _VIEW, pk="TAG#{tags[]}", sk="CAT#{cats[]}", measures={"n": Count()})
_JOBS = Window("jobs", JOB, pk="CUSTOMER#{customer}", time="at", future_tolerance=None)
_MONTH = replace(_JOBS, longest=timedelta(days=30))
_FINE = replace(_MONTH, precision=timedelta(seconds=1))


def _view(url: str = "/", **lists: int) -> Image:
    members = {name: {"L": [{"S": f"{name}{index}"} for index in range(size)]} for name, size in lists.items()}
    return image("view", url=url, id="1", at=NOW) | members


def _fold(declared: Any, *images: Image) -> Folded:
    return fold(Plan(flatten([declared])), changes_of([record(n, new) for n, new in enumerate(images, 1)]))


@pytest.mark.parametrize(
    "declared",
    [
        Aggregate("pair", _VIEW, pk="PAIR#{url}", sk="ID#{id}", measures={"n": Count()}),
        Aggregate("each", _VIEW, pk="URL#{url}", sk="TAG#{tags[]}", measures={"n": Count()}),
        Window("window", _VIEW, pk="URL#{url}", time="at"),
    ],
    ids=lambda declared: declared.name,
)
@pytest.mark.parametrize("character", ["x", "é", "\U0001f600"])
def test_a_group_is_as_long_as_its_item_can_afford(declared: Any, character: str) -> None:
    rest = "1tags0" if declared.name in ("pair", "each") else ""
    longest = character * ((MAX_GROUP_BYTES - len(rest)) // len(character.encode()))

    kept = _fold(declared, _view(longest, tags=1))
    refused = _fold(declared, _view(tags=1), _view(longest + "x" * 10, tags=1), _view(tags=1))

    assert (len(kept.deltas) > 0, kept.unfoldable) == (True, [])
    [held] = refused.unfoldable
    assert "invalid group" in held.reason
    assert f"expected at most {MAX_GROUP_BYTES} bytes" in held.reason
    assert len(held.reason) < 500
    assert all(max(map(len, map(str, delta.group)), default=0) < 50 for delta in refused.deltas)


def test_a_delta_quarantined_before_the_limit_returns_to_quarantine() -> None:
    delta = "by_url", ("x" * (MAX_GROUP_BYTES + 1),), (("n", 1),)

    folded = fold(Plan((_BY_URL,)), [Change(record(1, _view()), delta=delta)])

    assert (folded.deltas, len(folded.unfoldable)) == ([], 1)


def test_an_image_touches_as_many_groups_as_declared() -> None:
    declared = replace(_BY_TAGS, max_groups=12)

    assert len(_fold(declared, _view(tags=3, cats=4)).deltas) == 12
    folded = _fold(declared, _view(tags=1, cats=13), _view(tags=2, cats=2))

    assert len(folded.deltas) == 4
    [held] = folded.unfoldable
    assert "invalid group 'tags[]', 'cats[]': expected at most 12 groups of 'by_tags' per item, found 13" in held.reason


def test_too_many_groups_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: Any) -> None:
        raise AssertionError("36 million groups")

    monkeypatch.setattr(contributions, "product", made)

    folded = _fold(_BY_TAGS, _view(tags=6_000, cats=6_000))

    assert (folded.deltas, len(folded.unfoldable)) == ([], 1)


def test_a_correction_of_many_groups_is_compared_in_no_time() -> None:
    declared = replace(_BY_TAGS, sk="S", max_groups=10_000)
    old, new = _view(tags=10_000), _view(tags=9_999)
    new["tags"]["L"].reverse()

    with cpu_seconds_below(1):
        folded = fold(Plan((declared,)), changes_of([record(1, new, old)]))

    assert [(delta.group, delta.measures) for delta in folded.deltas] == [(("tags9999",), {"n": -1})]


_START = NOW // 86_400 * 86_400


@pytest.mark.parametrize(
    ("window", "buckets"),
    [(_JOBS, {"H": 48}), (_MONTH, {"H": 48, "D": 2}), (_FINE, {"M": 48 * 12, "H": 48, "D": 2})],
)
def test_a_batch_touches_each_bucket_once(window: Window, buckets: dict[str, int]) -> None:
    folded = fold_window(window, [(_START + place * 300, 1) for place in range(48 * 12)], NOW)

    assert Counter(delta.group[-2] for delta in folded.deltas) == buckets


def test_the_largest_update_is_within_an_expressions_4_kb() -> None:
    deltas = fold_window(_FINE, [(_START + place * 13, 1) for place in range(86_400 // 13)], NOW).deltas
    watermark = Watermark("shardId-1")
    longest = 0
    for delta in deltas:
        update = Update(delta.layout, delta.group, delta.measures, "")
        update.attributes[watermark.name] = watermark.bound(1)
        request = update.request("table", (watermark.name, watermark.bound(1)))
        longest = max(longest, len(request["UpdateExpression"]))

    assert longest < 4096
