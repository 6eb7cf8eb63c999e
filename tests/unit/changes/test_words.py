"""Declarations and their changes in words: stable, readable, and different where declarations are."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Attr,
    Average,
    Condition,
    Count,
    Event,
    Extremes,
    Histogram,
    Items,
    Packed,
    Percentiles,
    Ranking,
    Sum,
    Threshold,
    TimeWeighted,
    Window,
)
from dynamodb_counters._changes.change_words import advice, differences, event_differences, told
from dynamodb_counters._changes.effective import merged
from dynamodb_counters._changes.summary import aspects, event_words
from dynamodb_counters._changes.words import condition_words, length_words, words_of
from dynamodb_counters._declarations import Declarable, Declaration, flatten

_VIEW = Event("view", pk="URL#{url}", sk="T#{time}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
_RECENT = Window("recent", _VIEW, pk="URL#{url}", time="time", retention=timedelta(hours=25))


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Attr("a").eq(1), "a = 1"),
        (Attr("a").eq(value=True), "a = true"),
        (Attr("a").ne("x"), "a != 'x'"),
        (Attr("a").between(1, Decimal("2.50")), "a >= 1 and a <= 2.5"),
        (Attr("a").is_in([200, 301]), "a is one of 200, 301"),
        (Attr("a").is_in([200]), "a is one of 200"),
        (Attr("a").begins_with("x"), "a begins with 'x'"),
        (Attr("a").exists() | Attr("b").not_exists(), "a exists or no b"),
        ((Attr("a").lt(1) | Attr("b").gt(2)) & Attr("c").le(3), "(a < 1 or b > 2) and c <= 3"),
        (~(Attr("a").lt(1) & Attr("b").gt(2)) & Attr("c").le(3), "not (a < 1 and b > 2) and c <= 3"),
        ((Attr("a").eq(1) & Attr("b").eq(2)) | Attr("c").eq(3), "(a = 1 and b = 2) or c = 3"),
    ],
)
def test_a_condition_in_words(condition: Condition, words: str) -> None:
    assert condition_words(condition) == words


def test_a_declaration_in_words_by_line_and_by_aspect() -> None:
    both = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", views=Count(), b=Sum("n"))
    assert words_of(both) == "event view by url: views (count), b (sum of n)"
    assert condition_words(Attr("status").eq("paid") & ~Attr("test").exists()) == "status = 'paid' and no test"
    assert aspects(_VIEWS) == {
        "counts": "event view",
        "where": "all",
        "keeps": {"views": "count"},
        "per": "url",
        "key": "URL#{url} / STATISTICS",
        "ranked": "no",
        "write shards": "1",
        "in pages": "no",
        "groups of an item": "at most 1000",
        "expired items": "stay counted",
        "on change": "backfill",
    }


def test_the_treatment_of_expired_items_in_words() -> None:
    assert words_of(replace(_VIEWS, on_expiry="subtract")).endswith(", less expired items")
    assert words_of(replace(_VIEWS, on_expiry="tally")).endswith(", expired items in the tally")


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        (timedelta(days=1), "1 day"),
        (timedelta(days=7), "1 week"),
        (timedelta(hours=25), "25 hours"),
        (timedelta(minutes=90), "90 minutes"),
        (timedelta(seconds=90.5), "90.5 seconds"),
        (timedelta(0), "0 seconds"),
    ],
)
def test_a_duration_in_words(duration: timedelta, words: str) -> None:
    assert length_words(duration) == words


def test_groups_that_expire_in_words() -> None:
    daily = replace(_VIEWS, sk="DAY#{at:day}", retention=timedelta(days=31))
    assert words_of(daily) == "event view by url, at:day: views (count), kept 31 days"


def test_groups_in_pages_in_words() -> None:
    paged = Aggregate("views", _VIEW, by="url", pages=True)
    assert words_of(paged) == "event view by url: views (count), in pages"
    assert differences(merged((paged,), (replace(paged, pages=False),)).changes["views"]) == [("in pages", "no", "yes")]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"at": [10, Decimal("100.5")]}, "views up at 10, 100.5"),
        ({"at": [1], "of": "limit", "direction": "both", "once": True}, "views up or down at 1 of the limit, once"),
        ({"at": [1], "direction": "down", "burst": "highest"}, "views down at 1, the highest"),
    ],
)
def test_a_threshold_is_in_the_words_of_its_aggregate(how: dict[str, Any], words: str) -> None:
    watched = flatten([_VIEWS, Threshold("busy", _VIEWS, **how)])[0]
    assert words_of(watched) == f"{words_of(_VIEWS)}, threshold busy ({words})"


_USERS = ActiveMembers("users", _VIEW, by="url", member="client", time="time")
_SIZES = Percentiles("sizes", _VIEW, attribute="ms")
_PACES = Percentiles("paces", _VIEW, by="url", attribute="ms", error=0.02, time="at", retention=timedelta(days=9))
_LATEST = Extremes("latest", _VIEW, by="client", attribute="time", show=("url", "status"))
_SEATS = Window("seats", _VIEW, by="team", time="at", measure=TimeWeighted("seats"), retention=None)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (_USERS._members, "event view by url, client, time:day: items (count), in pages"),
        (_USERS, "aggregate users-members by url: active members by time to the day, spans up to 30 days"),
        (_SIZES, "event view in total: distribution of ms, error 0.01"),
        (_PACES, "event view by url: distribution of ms, error 0.02 by at to the hour, kept 9 days"),
        (_LATEST, "event view by client: extremes of time with url, status"),
        (_SEATS, "event view by team: level of seats by at to the minute in hours and days and months, kept for good"),
    ],
    ids=["members", "active", "distribution", "distributions", "extremes", "level"],
)
def test_measures_beyond_sums_in_words(declared: Declarable, words: str) -> None:
    assert words_of(flatten([declared])[-1]) == words


@pytest.mark.parametrize("changes", [{"pages": True}, {"sk": "OTHER#{url}"}], ids=["pages", "keys"])
def test_new_items_of_a_definition_that_is_kept_are_said_to_begin_from_nothing(changes: dict[str, Any]) -> None:
    before = replace(_VIEWS, sk="{url}")
    advised = advice(merged((replace(before, on_change="keep", **changes),), (before,)), "views")
    assert (advised.title, advised.does) == ("changed, in place", "begins in new items")
    assert advised.counts == "lack what is there already; correcting or deleting that lowers them"


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
    read = [repr(aspects(each)) for each in (_VIEWS, _RECENT, *changed)]

    assert len(set(read)) == len(read)


def test_events_that_differ_read_differently() -> None:
    since = datetime(2027, 1, 1, tzinfo=UTC)
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
                {"packed": replace(packed, since=since)},
                {"packed": replace(packed, since=since, before=packed)},
            )
        ),
    ]
    read = [repr(event_words(event)) for event in events]

    assert len(set(read)) == len(read)


def test_a_difference_names_aspect_before_and_after() -> None:
    after = replace(_VIEWS, where=Attr("bytes").gt(1), measures={"bytes": Sum("bytes")}, on_change="keep")
    change = merged((after,), (_VIEWS,)).changes["views"]

    assert differences(change) == [
        ("where", "all", "bytes > 1"),
        ("keeps bytes", "nothing", "sum of bytes"),
        ("keeps views", "count", "nothing"),
    ]


def test_an_event_that_changed_is_listed_with_what_counts_it() -> None:
    moved = replace(_VIEWS, source=replace(_VIEW, pk="PAGE#{url}"))

    [(name, change)] = event_differences((moved,), (_VIEWS,)).items()
    assert (name, change.aspects) == ("view", [("event", "URL#{url} / T#{time}", "PAGE#{url} / T#{time}")])
    assert "other keys" in advice(merged((moved,), (_VIEWS,)), "views").title


@pytest.mark.parametrize(
    ("packed", "before", "after", "title", "counts"),
    [
        (None, 1, 7, "kept longer", "count twice what comes again after the old retention"),
        (None, 1, None, "kept longer", "count twice what comes again after the old retention"),
        (None, 7, 1, "changed", "as before"),
        (None, None, 1, "changed", "as before"),
        (Packed("time"), 1, 7, "kept longer", "as before"),
        (Packed("time"), 7, 1, "changed", "as before"),
    ],
)
def test_an_event_that_is_kept_longer_has_a_title_of_its_own(
    packed: Packed | None, before: int | None, after: int | None, title: str, counts: str
) -> None:
    old, new = (
        replace(_VIEWS, source=replace(_VIEW, packed=packed, retention=None if days is None else timedelta(days=days)))
        for days in (before, after)
    )
    advised = event_differences((new,), (old,))["view"].advice
    assert (advised.title, advised.counts) == (title, counts)


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

    assert advice(found, "seen").does == (
        "counts new records from the deployment on, none from before; "
        f"named {old.name}, which is removed, it would go on with those counts"
    )
    assert told(found) == f"new: seen; removed: {old.name}"
    assert "which is removed" not in advice(merged((replace(_VIEWS, name="seen", pk="SEEN"),), (_RECENT,)), "seen").does


def test_declarations_over_a_changed_root_are_advised_to_wait_for_it() -> None:
    moved = replace(_VIEWS, pk="URL#{url}#{site}")
    same = Aggregate("same", _VIEWS, pk="SAME", sk="ALL", measures={"n": Count()})
    added = Aggregate("added", moved, pk="ADDED#{site}", sk="ALL", measures={"n": Count()})
    found = merged((moved, added, replace(same, source=moved)), (_VIEWS, same))

    for name in ("added", "same"):
        said = advice(found, name)
        assert said.title == "waits for a backfill of views"
        assert said.next == "counters backfill views"
    assert advice(found, "added").counts == "none"
    assert advice(found, "same").counts == "exact, over the old views"


def test_every_kind_of_change_is_in_words() -> None:
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
