"""Deltas add up to the items' state, whatever happens to the items and however their records are cut into batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Attr, Count, Event, Sum, Window
from dynamodb_counters._fold.deltas import Delta
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from tests.unit.fold.oracle import count
from tests.unit.fold.streams import NOW, Image, Shard, image

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_SALE = Event("sale", pk="SHOP#{shop}", sk="ID#{id}")

_DECLARED: tuple[Aggregate | Window, ...] = (
    Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()}),
    Aggregate("live", _VIEW, pk="LIVE", sk="LIVE", measures={"n": Count()}, on_expiry="subtract"),
    Aggregate(
        "traffic",
        _VIEW,
        pk="URL#{url}",
        sk="STATUS#{status}",
        measures={"hits": Count(), "bytes": Sum("bytes")},
        where=Attr("status").is_in([200, 404]) & Attr("bytes").exists(),
    ),
    Window("hourly", _VIEW, pk="URL#{url}", time="at", future_tolerance=None),
    Window(
        "bytes",
        _VIEW,
        pk="SITE",
        time="at",
        measure=Sum("bytes"),
        where=Attr("bytes").gt(-1),
        future_tolerance=None,
        on_expiry="subtract",
    ),
    Aggregate("sales", _SALE, pk="SHOP#{shop}", sk="SALES", measures={"sum": Sum("price")}),
)
_PLAN = Plan(_DECLARED)

Totals = dict[tuple[str, tuple[Any, ...], str], Fraction]


def _rows(images: Iterable[Image]) -> list[tuple[Event, dict[str, Any]]]:
    """The events among items, their values as plain text and exact numbers."""
    return [
        (event, {name: value.get("S", Fraction(value.get("N", 0))) for name, value in item.items()})
        for item in images
        for event in (_VIEW, _SALE)
        if item.get("_type") == {"S": event.name}
    ]


def _bucket_parts(window: Window, row: Mapping[str, Any]) -> Iterable[tuple[tuple[Any, ...], str, Fraction]]:
    """Contributions of one event to a window, by group and attribute."""
    hour, minute = divmod(int(row["at"]) // 60, 60)
    group = (row["url"], "H", hour) if window.name == "hourly" else ("H", hour)
    number = Fraction(1) if window.name == "hourly" else row.get("bytes", Fraction(-1))
    if number > -1:
        yield from ((group, "total", number), (group, f"m{minute:02d}", number))


def _expected(shard: Shard) -> Totals:
    """Totals of the items by brute force, with nothing of the fold."""
    totals: Totals = defaultdict(Fraction)
    live, expired = _rows(shard.items.values()), _rows(shard.expired)
    for declared in _DECLARED:
        if isinstance(declared, Aggregate):
            for group, measures in count(declared, live, expired).items():
                totals |= {(declared.name, group, name): Fraction(number) for name, number in measures.items()}
            continue
        for event, row in [*live, *(expired if declared.on_expiry == "keep" else [])]:
            for group, name, number in _bucket_parts(declared, row) if event is _VIEW else ():
                totals[declared.name, group, name] += number
    return {place: number for place, number in totals.items() if number}


def _total(deltas: Iterable[Delta]) -> Totals:
    totals: Totals = defaultdict(Fraction)
    for delta in deltas:
        name, group = delta.ref
        for measure, number in delta.measures.items():
            totals[name, group, measure] += Fraction(number)
    return {place: number for place, number in totals.items() if number}


_NUMBERS = st.one_of(
    st.sampled_from(["0", "1", "-1", "1.50", "0.1", "1E+3", "-0.9", "9" * 38, "-" + "9" * 38, "1E-60", "1E+87"]),
    st.integers(-(10**38) + 1, 10**38 - 1).map(str),
)
_AT = st.sampled_from([0, -1, 59, 60, 3599, 3600, 86_399, NOW, NOW + 10**6])


@st.composite
def _view_images(draw: st.DrawFn) -> Image:
    made = image("view", url=draw(st.sampled_from(["/", "#", ""])), at=draw(_AT))
    made["status"] = {"N": draw(st.sampled_from(["200", "200.0", "2E+2", "404", "500"]))}
    if draw(st.booleans()):
        made["bytes"] = {"N": draw(_NUMBERS)}
    return made


_IMAGES = st.one_of(
    _view_images(),
    _NUMBERS.map(lambda number: {**image("sale", shop="s"), "price": {"N": number}}),
    st.just(image("undeclared")),
    st.just({"pk": {"S": "x"}}),
)
_ACTIONS = st.tuples(st.sampled_from(["put", "put", "delete", "expire"]), st.sampled_from("abc"), _IMAGES)


@st.composite
def histories(draw: st.DrawFn) -> Shard:
    """Draw a history of a few items."""
    shard = Shard()
    for action, key, new in draw(st.lists(_ACTIONS, max_size=14)):
        shard.write(key, new if action == "put" else None, expired=action == "expire")
    return shard


@given(histories(), st.lists(st.integers(0, 14), max_size=4))
def test_deltas_of_all_batches_add_up_to_the_state_of_the_items(shard: Shard, cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(shard.records)]
    folded = [fold(_PLAN, changes_of(shard.records[start:end])) for start, end in pairwise(edges)]

    assert not any(batch.unfoldable or batch.late for batch in folded)
    assert _total(delta for batch in folded for delta in batch.deltas) == _expected(shard)


@given(histories())
def test_a_batch_gives_one_delta_an_item_with_its_first_and_last_record(shard: Shard) -> None:
    sequences = [entry["dynamodb"]["SequenceNumber"].zfill(40) for entry in shard.records]
    alone = [{delta.ref for delta in fold(_PLAN, changes_of([entry])).deltas} for entry in shard.records]
    deltas = fold(_PLAN, changes_of(shard.records)).deltas

    assert len({delta.ref for delta in deltas}) == len(deltas)
    assert {delta.ref for delta in deltas} == set().union(*alone)
    for delta in deltas:
        touching = [sequence for sequence, origins in zip(sequences, alone, strict=True) if delta.ref in origins]
        assert (delta.first, delta.last) == (touching[0], touching[-1])


@given(histories(), st.data())
def test_folding_above_applied_through_is_folding_the_later_records(shard: Shard, data: st.DataObject) -> None:
    origins = sorted({delta.ref for delta in fold(_PLAN, changes_of(shard.records)).deltas}, key=repr)
    sequences = [entry["dynamodb"]["SequenceNumber"].zfill(40) for entry in shard.records]
    places = st.integers(-1, len(sequences) - 1)
    chosen = {origin: data.draw(places) for origin in origins if data.draw(st.booleans())}
    applied_through = {origin: sequences[place] if place >= 0 else "0" * 40 for origin, place in chosen.items()}

    above = {delta.ref: delta for delta in fold(_PLAN, changes_of(shard.records), applied_through).deltas}

    assert set(above) <= set(chosen)
    for origin, place in chosen.items():
        later = {delta.ref: delta for delta in fold(_PLAN, changes_of(shard.records[place + 1 :])).deltas}
        assert (origin in above) is (origin in later)
        if origin in above:
            one, two = above[origin], later[origin]
            assert (one.first, one.last, one.measures) == (two.first, two.last, two.measures)
