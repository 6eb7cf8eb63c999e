"""A chunk counts as if each of its events had come in a record of its own; what was put aside stays there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from boto3.dynamodb.types import TypeSerializer
from hypothesis import example, given
from hypothesis import strategies as st

from counters_lambda.counting.batch import intake
from dynamodb_counters import Aggregate, Count, Event, Sum, Window
from dynamodb_counters._declarations import Declarable, flatten
from dynamodb_counters._fold.fold import Folded, fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change, changes_of
from dynamodb_counters._items.chunks import Row, Sign, encode_chunk
from dynamodb_counters._quarantine import aside_by_sequence, pack, quarantine_item, quarantine_key
from tests.unit.fold.strategies import GAME, declared, values
from tests.unit.fold.streams import NOW, Image, Record, image, record

_SALE = Event("sale", pk="SALE#{id}", sk="SALE")
_PLAIN = (
    Aggregate("shops", _SALE, pk="SHOP#{shop}", sk="ALL", measures={"n": Count(), "sum": Sum("price")}),
    Aggregate("sums", _SALE, pk="SUM#{shop}#{till}", sk="ALL", measures={"sum": Sum("price"), "tax": Sum("tax")}),
    Aggregate("all", _SALE, pk="ALL", sk="ALL", measures={"n": Count()}),
    Aggregate("capped", _SALE, pk="CAP#{shop}", sk="ALL", measures={"sum": Sum("price", cap=3)}),
    Window("hours", _SALE, pk="SHOP#{shop}", time="at"),
)
"""Declarations that columns can count, and others."""

_sales = st.fixed_dictionaries(
    {"shop": st.sampled_from(["a", "b", "", "x" * 3000]), "till": st.sampled_from(["1", "2"])},
    optional={
        "price": st.one_of(st.integers(-2, 9), st.sampled_from(["much", 10**37])),
        "tax": st.integers(-1, 1),
        "at": st.sampled_from([NOW - 60, NOW + 3600]),
    },
)
_signs: st.SearchStrategy[Sign] = st.sampled_from(["+", "+", "+", "-", "0"])
_serialize = TypeSerializer().serialize


def _row(sign: Sign, attributes: Mapping[str, Any]) -> Row:
    return Row(sign, {name: _serialize(value) for name, value in attributes.items()})


def _chunk(event: Event, rows: Sequence[Row]) -> Image:
    return {"_type": {"S": f"{event.name}#pack"}, "_chunk": {"B": encode_chunk(rows, "me")}}


def _alone(event: Event, rows: Sequence[Row]) -> list[Record]:
    images = [(row.sign, {**row.values, "_type": {"S": event.name}}) for row in rows]
    return [
        record(n, item) if sign == "+" else record(n, None, item)
        for n, (sign, item) in enumerate(images, 1)
        if sign != "0"
    ]


def _totals(folded: Folded) -> dict[Any, dict[str, Any]]:
    return {delta.ref: {name: number for name, number in delta.measures.items() if number} for delta in folded.deltas}


def _fold(declarations: Sequence[Declarable], records: Sequence[Record]) -> Folded:
    return fold(Plan(flatten(declarations)), changes_of(records))


@given(declared(), st.lists(st.builds(_row, _signs, values), min_size=1, max_size=9))
def test_a_chunk_counts_what_its_events_count_one_by_one(declarations: list[Declarable], rows: list[Row]) -> None:
    packed = _fold(declarations, [record(1, _chunk(GAME, rows))])

    assert _totals(packed) == _totals(_fold(declarations, _alone(GAME, rows)))


@given(st.lists(st.builds(_row, st.just("+") | _signs, _sales), min_size=1, max_size=9))
def test_columns_count_what_rows_do_and_leave_to_quarantine_what_they_do(rows: list[Row]) -> None:
    packed, alone = _fold(_PLAIN, [record(1, _chunk(_SALE, rows))]), _fold(_PLAIN, _alone(_SALE, rows))

    assert _totals(packed) == _totals(alone)
    assert [(entry.names, entry.reason) for entry in packed.invalid] == [
        (entry.names, entry.reason) for entry in alone.invalid
    ]
    assert len({entry.entry_id for entry in packed.invalid}) == len(packed.invalid)


@given(declared(), st.lists(st.builds(_row, st.just("+"), values), min_size=1, max_size=5))
def test_a_chunk_that_expires_takes_back_what_its_events_would(declarations: list[Declarable], rows: list[Row]) -> None:
    expired = [
        record(n, None, entry["dynamodb"]["NewImage"], expired=True) for n, entry in enumerate(_alone(GAME, rows))
    ]

    packed = _fold(declarations, [record(1, None, _chunk(GAME, rows), expired=True)])

    assert _totals(packed) == _totals(_fold(declarations, expired))


def test_a_chunk_that_cannot_be_read_is_quarantined_whole() -> None:
    spoiled = {"_type": {"S": "sale#pack"}, "_chunk": {"B": b"no chunk"}}

    folded = _fold(_PLAIN, [record(1, spoiled), record(2, image("sale", shop="a", till="1", price=1, tax=0, at=NOW))])

    [entry] = folded.invalid
    assert entry.record["dynamodb"]["NewImage"] == spoiled
    assert "the chunk cannot be read" in entry.reason
    assert folded.deltas


def test_a_batch_is_cut_where_many_events_cannot_be_folded() -> None:
    rows = [_row("+", {"shop": "a", "till": "1", "n": n}) for n in range(100)]
    records = [record(n, _chunk(_SALE, rows)) for n in range(1, 10)]

    folded = fold(Plan(_PLAIN), changes_of(records), limit=250)

    assert folded.changes == 3
    assert len(folded.invalid) == 300


@given(st.lists(st.builds(_row, _signs, _sales), min_size=1, max_size=30), st.data())
def test_a_chunk_that_changes_counts_the_difference(rows: list[Row], data: st.DataObject) -> None:
    """Equal contributions cancel one by one: if one of two is gone, one is left."""
    sample = data.draw(st.lists(st.sampled_from(rows), min_size=1, max_size=30))

    changed = _fold(_PLAIN, [record(1, _chunk(_SALE, sample), _chunk(_SALE, rows))])

    both = _fold(_PLAIN, [record(1, _chunk(_SALE, sample)), record(2, None, _chunk(_SALE, rows))])
    assert _nonzero(changed) == _nonzero(both)


def _nonzero(folded: Folded) -> dict[Any, dict[str, Any]]:
    return {ref: measures for ref, measures in _totals(folded).items() if measures}


def test_a_row_in_quarantine_is_kept_no_longer_than_its_chunk() -> None:
    chunk = {**_chunk(_SALE, [_row("+", {"shop": "a", "till": "1"})]), "ttl": {"N": "99"}}

    entries = _fold(_PLAIN, [record(1, chunk)]).invalid

    assert [entry.record["dynamodb"]["NewImage"]["ttl"] for entry in entries] == [{"N": "99"}]


# What an earlier delivery has put aside stays there, though the code that delivers it again could count it


_ALL = Aggregate("all", _SALE, pk="ALL", sk="ALL", measures={"n": Count()})
_SUMS = Aggregate("sums", _SALE, pk="SHOP#{shop}", sk="ALL", measures={"sum": Sum("price")})
_FORMER, _MENDED = Plan((_ALL, _SUMS)), Plan((_ALL, replace(_SUMS, measures={"sum": Sum("tax")})))
"""Code that fails on a sale without a price, and code that fails on none."""

_MUCH = {"price": {"S": "much"}}
_priced = st.fixed_dictionaries({"shop": st.sampled_from("ab"), "price": st.sampled_from(["much", "1", "2"])})


def _stored(sale: dict[str, str]) -> Image:
    price = {"S": "much"} if sale["price"] == "much" else {"N": sale["price"]}
    return {"shop": {"S": sale["shop"]}, "price": price, "tax": {"N": "1"}}


def _single(sale: dict[str, str]) -> Image:
    return {**image("sale"), **_stored(sale)}


def _entries(folded: Folded) -> list[Image]:
    return [
        quarantine_item(quarantine_key("s", entry.entry_id), "", {"record": pack(entry.record)}, entry.names, NOW)
        for entry in folded.invalid
    ]


def _again(records: Sequence[Record], entries: Sequence[Image]) -> list[Change]:
    changes, aside = changes_of(records), aside_by_sequence(entries)
    for change in changes:
        change.aside = aside.get(change.sequence, {})
    return changes


def _redriven(entries: Sequence[Image]) -> list[Change]:
    return intake(record(100 + n, {**entry, "state": {"S": "released"}}, entry) for n, entry in enumerate(entries))


def _sums(*folds: Folded) -> dict[Any, Any]:
    totals: Counter[Any] = Counter()
    for folded in folds:
        totals.update({(delta.ref, name): n for delta in folded.deltas for name, n in delta.measures.items()})
    return {place: number for place, number in totals.items() if number}


_ONE, _BAD = {"shop": "a", "price": "1"}, {"shop": "a", "price": "much"}


@example([_ONE], [("+", _BAD), ("+", _ONE)], False)
@example([_ONE], [("-", _BAD), ("-", _ONE)], True)
@given(st.lists(_priced, min_size=1, max_size=5), st.lists(st.tuples(_signs, _priced), max_size=5), st.booleans())
def test_what_is_aside_counts_once_it_is_redriven(
    singles: list[dict[str, str]], rows: list[tuple[Sign, dict[str, str]]], is_end: bool
) -> None:
    corrected = pairwise(singles)
    records = [record(n, _single(new), _single(old)) for n, (old, new) in enumerate(corrected, 1)]
    chunk = _chunk(_SALE, [Row(sign, _stored(sale)) for sign, sale in rows])
    records += [record(50, _single(singles[0])), record(60, None, chunk) if is_end else record(60, chunk)]
    entries = _entries(fold(_FORMER, changes_of(records)))

    again = fold(_MENDED, _again(records, entries))

    assert again.invalid == []
    assert _sums(again, fold(_MENDED, _redriven(entries))) == _sums(fold(_MENDED, changes_of(records)))


def test_what_the_code_cannot_count_itself_waits_for_its_own_declarations() -> None:
    records = [record(1, {**image("sale", shop="a"), **_MUCH})]
    entries = _entries(fold(_FORMER, changes_of(records)))
    stricter = Plan((replace(_ALL, pk="TILL#{till}"), _SUMS))

    result = fold(stricter, _again(records, entries))
    after = fold(stricter, _again(records, entries + _entries(result)))

    assert ([entry.names for entry in result.invalid], result.deltas) == ([("all",)], [])
    assert after.invalid == []


def test_an_entry_is_of_the_declarations_it_names_or_of_all_unless_its_names_are_malformed() -> None:
    records = [record(1, image("sale", shop="a"))]
    of_all, of_one = (
        quarantine_item(quarantine_key("s", f"{1:040}#NewImage#0badcafe"), "", {}, names, NOW)
        for names in ((), ("all",))
    )

    for item, counting in ((of_all, []), (of_one, []), ({**of_one, "names": {"M": {}}}, ["all"])):
        assert [delta.layout.name for delta in fold(_MENDED, _again(records, [item])).deltas] == counting


def test_what_is_left_has_the_entry_that_an_earlier_delivery_may_still_put() -> None:
    records = [record(1, {**image("sale", shop="a"), **_MUCH})]
    [first] = fold(_FORMER, changes_of(records)).invalid
    other = quarantine_item(quarantine_key("s", f"{1:040}#NewImage#0badcafe"), "", {}, ("all",), NOW)

    [again] = fold(_FORMER, _again(records, [other])).invalid

    assert (again.entry_id, again.names) == (first.entry_id, ("sums",))
