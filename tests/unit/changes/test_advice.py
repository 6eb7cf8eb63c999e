"""What a deployment does with each name, and the JSON of declarations: different where declarations are."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters import (
    Aggregate,
    Attr,
    Average,
    Count,
    Counter,
    Event,
    Histogram,
    Items,
    Packed,
    Ranking,
    Sum,
    Threshold,
    Window,
)
from dynamodb_counters._changes.advice import advice, event_advice, told
from dynamodb_counters._changes.effective import merged
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import described

_VIEW = Event("view", pk="URL#{url}", sk="T#{time}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
_RECENT = Window("recent", _VIEW, pk="URL#{url}", time="time", retention=timedelta(hours=25))


def _text(declared: Any) -> str:
    return json.dumps(described([declared]), sort_keys=True)


_CHANGES: list[tuple[Declaration, dict[str, Any]]] = [
    (_VIEWS, {"source": replace(_VIEW, name="visit")}),
    (_VIEWS, {"source": Items("view", where=Attr("url").exists())}),
    (_VIEWS, {"pk": "PAGE#{url}"}),
    (_VIEWS, {"sk": "OTHER"}),
    (_VIEWS, {"measures": {"views": Sum("bytes")}}),
    (_VIEWS, {"measures": {"views": Sum("bytes", cap=5)}}),
    (_VIEWS, {"measures": {"views": Average("bytes")}}),
    (_VIEWS, {"measures": {"views": Count(), "more": Count()}}),
    *((_VIEWS, {"measures": {"views": kind("bytes", default=number)}}) for kind in (Sum, Average) for number in (0, 7)),
    *(
        (_VIEWS, {"measures": {"views": made}})
        for bins in ([1, 2, 3, 4], [1, 2, 3, 5], [10, 20, 30, 40])
        for made in (
            Histogram("bytes", exactly=bins),
            Histogram("bytes", at_least=bins),
            Histogram("bytes", bounds=bins),
        )
    ),
    (_VIEWS, {"where": Attr("bytes").gt(1)}),
    (_VIEWS, {"on_expiry": "subtract"}),
    (_VIEWS, {"write_shards": 2}),
    (_VIEWS, {"sk": "OTHER#{url}"}),
    (_VIEWS, {"sk": "OTHER#{url}", "pages": True}),
    (_VIEWS, {"ranking": Ranking(measure="views", leaderboard="URLS")}),
    (_VIEWS, {"ranking": Ranking(measure="views", leaderboard="URLS", write_shards=2)}),
    (_VIEWS, {"max_groups": 7}),
    (_VIEWS, {"on_change": "keep"}),
    (_VIEWS, {"sk": "DAY#{at:day}"}),
    (_VIEWS, {"sk": "DAY#{at:day}", "retention": timedelta(days=7)}),
    (_VIEWS, {"sk": "DAY#{at:day}", "retention": timedelta(days=8)}),
    (_RECENT, {"time": "at"}),
    (_RECENT, {"retention": timedelta(hours=26)}),
    (_RECENT, {"retention": None}),
    (_RECENT, {"measure": Sum("bytes")}),
    (_RECENT, {"late": "quarantine"}),
    (_RECENT, {"future_tolerance": None}),
    (_RECENT, {"future_tolerance": timedelta(0)}),
    (_RECENT, {"precision": timedelta(hours=1)}),
    (_RECENT, {"tiers": ("minute", "hour")}),
    (_RECENT, {"on_change": "fail"}),
]


def test_declarations_that_differ_read_differently() -> None:
    changed = [replace(declaration, **changes) for declaration, changes in _CHANGES]
    read = [_text(each) for each in (_VIEWS, _RECENT, *changed)]

    assert len(set(read)) == len(read)


def test_events_that_differ_read_differently() -> None:
    packed = Packed("time", bucket=timedelta(hours=1))
    events = [
        _VIEW,
        *(
            replace(_VIEW, **changes)
            for changes in (
                {"sk": "AT#{time}"},
                {"retention": timedelta(days=7)},
                {"version": "at"},
                {"packed": packed},
                {"packed": replace(packed, parts=4)},
                {"packed": replace(packed, parts=4, partition_by="url")},
                {"packed": replace(packed, chunk_bytes=5000)},
                {"packed": replace(packed, future_tolerance=None)},
            )
        ),
    ]
    read = [_text(event) for event in events]

    assert len(set(read)) == len(read)


def test_what_is_counted_is_named_and_an_event_is_there_once() -> None:
    over = Aggregate("over", _VIEWS, pk="OVER", sk="ALL", measures={"n": Sum("views")})
    found = described([over, _VIEWS, _RECENT, Threshold("busy", _VIEWS, at=[Decimal("2.5")])])
    assert {name: one.get("source", one.get("aggregate")) for name, one in found.items()} == {
        "busy": "views",
        "over": "views",
        "recent": "view",
        "view": None,
        "views": "view",
    }
    assert found["busy"]["at"] == [{"class": "Decimal", "d": "2.5"}]
    assert found["view"] == {"class": "Event", "name": "view", "pk": "URL#{url}", "sk": "T#{time}"}
    carts = described([replace(_VIEWS, source=Items("carts", where=Attr("price").exists()))])
    assert carts["views"]["source"]["name"] == "carts"


def test_an_event_that_changed_is_listed_with_what_counts_it() -> None:
    moved = replace(_VIEWS, source=replace(_VIEW, pk="PAGE#{url}"))

    assert [*event_advice((moved,), (_VIEWS,))] == ["view"]
    assert "other keys" in advice(merged((moved,), (_VIEWS,)), "views").title


@pytest.mark.parametrize(
    ("before", "after", "title", "warns"),
    [
        (1, 7, "kept longer", True),
        (1, None, "kept longer", True),
        (7, 1, "changed", False),
        (None, 1, "changed", False),
    ],
)
def test_an_event_that_is_kept_longer_has_a_title_of_its_own(
    before: int | None, after: int | None, title: str, *, warns: bool
) -> None:
    old, new = (
        replace(_VIEWS, source=replace(_VIEW, retention=None if days is None else timedelta(days=days)))
        for days in (before, after)
    )
    *_, advised = event_advice((new,), (old,))["view"]
    assert advised == (title, "send no event again that is older than its old retention" if warns else "")


@pytest.mark.parametrize("changes", [{"packed": Packed("time", parts=2)}, {"retention": timedelta(days=7)}])
def test_a_packed_event_keeps_its_layout_and_retention(changes: dict[str, Any]) -> None:
    packed = replace(_VIEW, packed=Packed("time"), retention=timedelta(days=1))
    old, new = (replace(_VIEWS, source=source) for source in (packed, replace(packed, **changes)))
    *_, advised = event_advice((new,), (old,))["view"]
    assert advised.title == "packed otherwise"
    assert "another name" in advised.next


def test_the_log_of_a_takeover_is_one_line_as_in_the_docs() -> None:
    total = Aggregate("total", _VIEW, pk="TOTAL", sk="ALL", measures={"n": Count()})
    fees = replace(total, name="fees", pk="FEES")
    found = merged((replace(total, where=Attr("bytes").gt(1)), fees), (total,))
    docs = (Path(__file__).parents[3] / "docs" / "changing-declarations.md").read_text()

    assert told(found) == "new: fees; changed, waits for a backfill: total"
    assert "; " + told(found) in " ".join(docs.split())
    assert told(merged((total,), (total,))) == "nothing changes"
    assert told(merged((fees,), (total, _RECENT))) == "new: fees; removed: recent, total"


@pytest.mark.parametrize("old", [_VIEWS, _RECENT], ids=["aggregate", "window"])
def test_advice_for_a_new_name_has_the_one_that_would_keep_the_counts(old: Declaration) -> None:
    found = merged((replace(old, name="seen"),), (old,))

    assert advice(found, "seen") == (f"new, perhaps {old.name} renamed", "counters backfill seen")
    assert told(found) == f"new: seen; removed: {old.name}"
    assert advice(merged((replace(_VIEWS, name="seen", pk="SEEN"),), (_RECENT,)), "seen").title == "new"


def test_declarations_over_a_changed_root_are_advised_to_wait_for_it() -> None:
    moved = replace(_VIEWS, pk="URL#{url}#{site}")
    same = Aggregate("same", _VIEWS, pk="SAME", sk="ALL", measures={"n": Count()})
    added = Aggregate("added", moved, pk="ADDED#{site}", sk="ALL", measures={"n": Count()})
    found = merged((moved, added, replace(same, source=moved)), (_VIEWS, same))

    for name in ("added", "same"):
        assert advice(found, name) == ("waits for a backfill of views", "counters backfill views")


def test_no_backfill_is_advised_for_a_counter() -> None:
    stock = Counter("stock", by="sku")
    changed = replace(stock, measures={"left": Count()})
    found = [advice(merged((stock,), ()), "stock"), advice(merged((changed,), (stock,)), "stock")]
    assert [(each.title, each.next) for each in found] == [("new", ""), ("changed, in place", "")]


def test_every_kind_of_change_has_a_title() -> None:
    big = replace(_VIEWS, where=Attr("bytes").gt(1))
    over = Aggregate("over", _VIEWS, pk="OVER", sk="ALL", measures={"n": Count()})
    cases: dict[str, tuple[tuple[Declaration, ...], tuple[Declaration, ...]]] = {
        "changed, in place: views": ((replace(big, on_change="keep"),), (_VIEWS,)),
        "refused: views": ((replace(big, on_change="fail"),), (_VIEWS,)),
        "other limits or thresholds: views": ((replace(_VIEWS, max_groups=5),), (_VIEWS,)),
        "removed: recent": ((_VIEWS,), (_VIEWS, _RECENT)),
        "new: seen; removed: views": ((replace(_VIEWS, name="seen"),), (_VIEWS,)),
        "removed, still needed: views": ((replace(over, source=_VIEW),), (_VIEWS, over)),
    }
    for phrase, (declared, folded) in cases.items():
        assert phrase in told(merged(declared, folded))
