"""Which records count, how the two images of a change work against each other, and what waits in quarantine."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Attr, Count, Event, Sum, Window
from dynamodb_counters._declarations import flatten
from dynamodb_counters._fold import plan as contributions
from dynamodb_counters._fold.fold import Delta, Folded, fold
from dynamodb_counters._fold.layouts import MAX_GROUP_BYTES, Update
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import MAX_TTL_AGE, Change, changes_of, single_image
from dynamodb_counters.exactly_once import Watermark
from tests.cpu_time import cpu_seconds_below
from tests.unit.fold.buckets import JOBS
from tests.unit.fold.buckets import fold as fold_window
from tests.unit.fold.streams import NOW, TTL_IDENTITY, Image, Record, Shard, image, record

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count(), "bytes": Sum("bytes")})
_LIVE = Aggregate("live", _VIEW, pk="LIVE", sk="LIVE", measures={"n": Count()}, on_expiry="subtract")
_BIG = Aggregate("big", _VIEW, pk="BIG", sk="BIG", measures={"n": Count()}, where=Attr("bytes").ge(100))
_RECENT = Window("recent", _VIEW, pk="URL#{url}", time="at")
_BYTES = Aggregate("size", _VIEW, pk="SIZE", sk="SIZE", measures={"bytes": Sum("bytes")})


def _view(url: str = "/", size: int = 1, at: int = NOW) -> Image:
    return image("view", url=url, bytes=size, at=at)


def _measures(records: list[Record], *declarations: Any) -> dict[Any, Any]:
    folded = fold(Plan(declarations or (_VIEWS, _LIVE, _BIG)), changes_of(records))
    assert not folded.invalid
    return {delta.ref: delta.measures for delta in folded.deltas}


@pytest.mark.parametrize(
    ("new", "old"),
    [(_view() | {"note": {"S": "seen"}}, _view()), (_view() | {"bytes": {"N": "1.0"}}, _view()), (_view(size=0), None)],
)
def test_a_change_that_concerns_no_measure_causes_no_write(new: Image, old: Image | None) -> None:
    counting = () if old is None else (_VIEWS, _LIVE, _BIG, _RECENT)
    assert _measures([record(1, new, old)], _BYTES, *counting) == {}


@pytest.mark.parametrize(
    ("ttl", "created", "counts"),
    [
        ({"N": str(NOW)}, NOW, True),
        ({"N": f"{NOW}.0"}, NOW + 47 * 3600, True),
        ({"N": str(NOW + 1)}, NOW, False),
        ({"N": str(NOW - MAX_TTL_AGE)}, NOW, False),
        ({"N": str(NOW - MAX_TTL_AGE + 1)}, NOW, True),
        ({"N": "60"}, NOW, False),
        ({"S": str(NOW)}, NOW, False),
        ({"N": str(NOW)}, None, False),
        (None, NOW, False),
    ],
)
def test_another_regions_ttl_names_no_service_so_the_ttl_decides(ttl: Any, created: Any, counts: bool) -> None:
    old = _view() if ttl is None else {**_view(), "ttl": ttl}
    expected = {} if counts else {("views", ("/",)): {"n": -1, "bytes": -1}}

    assert _measures([record(1, None, old, created=created)], _VIEWS) == expected
    assert _measures([record(1, None, old, created=created)], _LIVE) == {("live", ()): {"n": -1}}


def test_a_correction_after_the_ttl_is_no_expiry() -> None:
    old, new = {**_view(size=1), "ttl": {"N": str(NOW)}}, _view(size=3)

    correction = record(1, new, old)

    assert _measures([correction], _VIEWS) == {("views", ("/",)): {"n": 0, "bytes": 2}}
    # As quarantine keeps it.
    assert _measures([dict(single_image(correction, "OldImage"))], _VIEWS) == {
        ("views", ("/",)): {"n": -1, "bytes": -1}
    }


def test_a_redriven_deletion_is_judged_by_when_it_was_made() -> None:
    deletion = record(1, None, {**_view(), "ttl": {"N": str(NOW + 60)}})
    redriven = record(9, _view(), created=NOW + 86_400)

    [delta] = fold(Plan((_VIEWS,)), [Change(redriven, deletion)]).deltas

    assert delta.measures == {"n": -1, "bytes": -1}


_OTHERS = TTL_IDENTITY | {"principalId": "lambda.amazonaws.com"}, TTL_IDENTITY | {"type": "AssumedRole"}


@pytest.mark.parametrize("identity", [None, {}, *_OTHERS])
def test_only_the_ttl_process_makes_expiries(identity: Any) -> None:
    deletion = {**record(1, None, _view()), "userIdentity": identity}

    assert _measures([deletion], _VIEWS) == {("views", ("/",)): {"n": -1, "bytes": -1}}


def test_the_stream_counts_an_insertion_in_all_that_its_transaction_has_not_counted_in() -> None:
    once = image("view#once", url="/", bytes=1) | {"_in": {"SS": ["live"]}}

    assert _measures([record(1, once)], _VIEWS, _LIVE) == _measures([record(1, _view())], _VIEWS)
    assert _measures([record(1, None, once)], _VIEWS, _LIVE) == _measures([record(1, None, _view())], _VIEWS, _LIVE)


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
    assert [(int(entry.sequence), entry.image_name) for entry in folded.invalid] == [(2, side) for side in sides]
    [names] = {entry.names for entry in folded.invalid}
    for entry in folded.invalid:
        assert all(f"{name}: " in entry.reason for name in names)
        assert [name for name in ("NewImage", "OldImage") if name in entry.record["dynamodb"]] == [entry.image_name]
    for declaration in _DECLARATIONS:
        # As if there were no other. The other image of the record counts as it would alone.
        counted = also if not names or declaration.name in names else [malformed]
        alone = fold(Plan((declaration,)), changes_of([around[0], *counted, around[1]]))
        assert not alone.invalid
        assert _contents(folded.deltas, declaration.name) == _contents(alone.deltas, declaration.name)
    for delta in folded.deltas:
        assert delta.layout.key(delta.group, "shard")


def _contents(deltas: list[Delta], name: str) -> list[Any]:
    return [(d.group, d.first, d.last, d.measures) for d in deltas if d.layout.name == name]


@pytest.mark.parametrize("change", [{}, {"Keys": {"pk": {"S": "x"}}}, {"NewImage": None}, {"OldImage": None}])
def test_a_record_without_images_goes_to_quarantine(change: dict[str, Any]) -> None:
    bare: Record = {"eventName": "INSERT", "dynamodb": {"SequenceNumber": "2", **change}}

    folded = fold(_PLAN, changes_of([bare, record(3, _GOOD)]))

    assert [int(entry.sequence) for entry in folded.invalid] == [2]
    assert all(delta.measures for delta in folded.deltas)


def test_images_that_the_filter_leaves_out_need_not_be_well_formed() -> None:
    plan = Plan((Aggregate("s", _VIEW, pk="S", sk="S", measures={"b": Sum("bytes")}, where=Attr("bytes").ge(0)),))

    assert fold(plan, changes_of([record(1, _without("bytes"))])).invalid == []


_HISTORY_PLAN = Plan(
    (
        Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()}),
        Aggregate("live", _VIEW, pk="LIVE", sk="LIVE", measures={"n": Count()}, on_expiry="subtract"),
        Window("hourly", _VIEW, pk="URL#{url}", time="at", future_tolerance=None),
        Window("bytes", _VIEW, pk="SITE", time="at", measure=Sum("bytes"), where=Attr("bytes").gt(-1)),
    )
)


@st.composite
def _view_images(draw: st.DrawFn) -> Image:
    view = image("view", url=draw(st.sampled_from("ab")), at=NOW - draw(st.sampled_from([0, 59, 60, 3600])))
    return view | draw(st.sampled_from([{}, {"bytes": {"N": "0"}}, {"bytes": {"N": "1.50"}}]))


_IMAGES = st.one_of(_view_images(), st.just(image("undeclared")), st.just({"pk": {"S": "x"}}))
_ACTIONS = st.tuples(st.sampled_from(["put", "put", "delete", "expire"]), st.sampled_from("abc"), _IMAGES)


@st.composite
def histories(draw: st.DrawFn) -> Shard:
    """Draw a history of a few items."""
    shard = Shard()
    for action, key, new in draw(st.lists(_ACTIONS, max_size=14)):
        shard.write(key, new if action == "put" else None, expired=action == "expire")
    return shard


@given(histories())
def test_a_batch_gives_one_delta_an_item_with_its_first_and_last_record(shard: Shard) -> None:
    sequences = [entry["dynamodb"]["SequenceNumber"].zfill(40) for entry in shard.records]
    alone = [{delta.ref for delta in fold(_HISTORY_PLAN, changes_of([entry])).deltas} for entry in shard.records]
    deltas = fold(_HISTORY_PLAN, changes_of(shard.records)).deltas

    assert len({delta.ref for delta in deltas}) == len(deltas)
    assert {delta.ref for delta in deltas} == set().union(*alone)
    for delta in deltas:
        touching = [sequence for sequence, origins in zip(sequences, alone, strict=True) if delta.ref in origins]
        assert (delta.first, delta.last) == (touching[0], touching[-1])


@given(histories(), st.data())
def test_folding_above_applied_through_is_folding_the_later_records(shard: Shard, data: st.DataObject) -> None:
    origins = sorted({delta.ref for delta in fold(_HISTORY_PLAN, changes_of(shard.records)).deltas}, key=repr)
    sequences = [entry["dynamodb"]["SequenceNumber"].zfill(40) for entry in shard.records]
    places = st.integers(-1, len(sequences) - 1)
    chosen = {origin: data.draw(places) for origin in origins if data.draw(st.booleans())}
    applied_through = {origin: sequences[place] if place >= 0 else "0" * 40 for origin, place in chosen.items()}

    above = {delta.ref: delta for delta in fold(_HISTORY_PLAN, changes_of(shard.records), applied_through).deltas}

    assert set(above) <= set(chosen)
    for origin, place in chosen.items():
        later = {delta.ref: delta for delta in fold(_HISTORY_PLAN, changes_of(shard.records[place + 1 :])).deltas}
        assert (origin in above) is (origin in later)
        if origin in above:
            first, second = above[origin], later[origin]
            assert (first.first, first.last, first.measures) == (second.first, second.last, second.measures)


# Limits of what one image may ask of the table, and of what a batch does: one update a touched group and bucket


_BY_URL = Aggregate("by_url", _VIEW, pk="URL#{url}", sk="S", measures={"n": Count()})
_BY_TAGS = Aggregate("by_tags", _VIEW, pk="TAG#{tags[]}", sk="CAT#{cats[]}", measures={"n": Count()})
_FINE = replace(JOBS, longest=timedelta(days=30), precision=timedelta(seconds=1))


def _tagged(url: str = "/", **lists: int) -> Image:
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

    result = _fold(declared, _tagged(longest, tags=1))
    refused = _fold(declared, _tagged(tags=1), _tagged(longest + "x" * 10, tags=1), _tagged(tags=1))

    assert (len(result.deltas) > 0, result.invalid) == (True, [])
    [entry] = refused.invalid
    assert "invalid group" in entry.reason
    assert f"expected at most {MAX_GROUP_BYTES} bytes" in entry.reason
    assert len(entry.reason) < 500
    assert all(max(map(len, map(str, delta.group)), default=0) < 50 for delta in refused.deltas)


def test_a_delta_quarantined_before_the_limit_returns_to_quarantine() -> None:
    delta = "by_url", ("x" * (MAX_GROUP_BYTES + 1),), (("n", 1),)

    folded = fold(Plan((_BY_URL,)), [Change(record(1, _tagged()), delta=delta)])

    assert (folded.deltas, len(folded.invalid)) == ([], 1)


def test_an_image_touches_as_many_groups_as_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = replace(_BY_TAGS, max_groups=12)

    assert len(_fold(declared, _tagged(tags=3, cats=4)).deltas) == 12
    folded = _fold(declared, _tagged(tags=1, cats=13), _tagged(tags=2, cats=2))

    assert len(folded.deltas) == 4
    assert "'tags[]', 'cats[]': expected at most 12 groups of 'by_tags' per item, found 13" in folded.invalid[0].reason
    # 36 million are refused before they are made.
    monkeypatch.delattr(contributions, "product")
    folded = _fold(_BY_TAGS, _tagged(tags=6_000, cats=6_000))
    assert (folded.deltas, len(folded.invalid)) == ([], 1)


def test_a_correction_of_many_groups_is_compared_in_no_time() -> None:
    declared = replace(_BY_TAGS, sk="S", max_groups=10_000)
    old, new = _tagged(tags=10_000), _tagged(tags=9_999)
    new["tags"]["L"].reverse()

    with cpu_seconds_below(1):
        folded = fold(Plan((declared,)), changes_of([record(1, new, old)]))

    assert [(delta.group, delta.measures) for delta in folded.deltas] == [(("tags9999",), {"n": -1})]


_START = NOW // 86_400 * 86_400


def test_the_largest_update_is_within_an_expressions_4_kb() -> None:
    deltas = fold_window(_FINE, [(_START + place * 13, 1) for place in range(86_400 // 13)], NOW).deltas
    watermark = Watermark("shardId-1")
    longest = 0
    for delta in deltas:
        update = Update(delta.layout, delta.group, delta.measures, "")
        update.attributes[watermark.name] = watermark.bound(1)
        request = update.request("table", (watermark.name, watermark.bound(1)))
        longest = max(longest, len(request["UpdateExpression"]))

    assert 0 < longest < 4096
