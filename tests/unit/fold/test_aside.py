"""What an earlier delivery has put aside stays there, though the code that delivers it again could count it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Count, Event, Sum
from dynamodb_counters._commit.batch import intake
from dynamodb_counters._fold.fold import Folded, fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change, changes_of
from dynamodb_counters._items.chunks import Row, Sign, encode_chunk
from dynamodb_counters._quarantine.quarantine import aside_by_sequence, pack, quarantine_item, quarantine_key
from tests.unit.fold.streams import NOW, Image, Record, image, record

_SALE = Event("sale", pk="SALE#{id}", sk="SALE")
_ALL = Aggregate("all", _SALE, pk="ALL", sk="ALL", measures={"n": Count()})
_SUMS = Aggregate("sums", _SALE, pk="SHOP#{shop}", sk="ALL", measures={"sum": Sum("price")})
_FORMER, _MENDED = Plan((_ALL, _SUMS)), Plan((_ALL, replace(_SUMS, measures={"sum": Sum("tax")})))
"""Code that fails on a sale without a price, and code that fails on none."""

_MUCH = {"price": {"S": "much"}}
_sales = st.fixed_dictionaries({"shop": st.sampled_from("ab"), "price": st.sampled_from(["much", "1", "2"])})


def _stored(sale: dict[str, str]) -> Image:
    price = {"S": "much"} if sale["price"] == "much" else {"N": sale["price"]}
    return {"shop": {"S": sale["shop"]}, "price": price, "tax": {"N": "1"}}


def _single(sale: dict[str, str]) -> Image:
    return {**image("sale"), **_stored(sale)}


def _chunk(sales: Sequence[tuple[Sign, dict[str, str]]]) -> Image:
    rows = [Row(sign, _stored(sale)) for sign, sale in sales]
    return {"_type": {"S": "sale#pack"}, "_chunk": {"B": encode_chunk(rows, "me")}}


def _entries(folded: Folded) -> list[Image]:
    return [
        quarantine_item(quarantine_key("s", one.entry_id), "", {"record": pack(one.record)}, one.names, NOW)
        for one in folded.unfoldable
    ]


def _again(records: Sequence[Record], entries: Sequence[Image]) -> list[Change]:
    changes, aside = changes_of(records), aside_by_sequence(entries)
    for change in changes:
        change.aside = aside.get(change.sequence, {})
    return changes


def _redriven(entries: Sequence[Image]) -> list[Change]:
    return intake(record(100 + n, {**one, "state": {"S": "released"}}, one) for n, one in enumerate(entries))


def _totals(*folds: Folded) -> dict[Any, Any]:
    totals: Counter[Any] = Counter()
    for folded in folds:
        totals.update({(delta.ref, name): n for delta in folded.deltas for name, n in delta.measures.items()})
    return {place: number for place, number in totals.items() if number}


_signs: st.SearchStrategy[Sign] = st.sampled_from(["+", "-"])


_ONE, _BAD = {"shop": "a", "price": "1"}, {"shop": "a", "price": "much"}


@example([_ONE], [("+", _BAD), ("+", _ONE)], False)
@example([_ONE], [("-", _BAD), ("-", _ONE)], True)
@given(st.lists(_sales, min_size=1, max_size=5), st.lists(st.tuples(_signs, _sales), max_size=5), st.booleans())
def test_what_is_aside_counts_once_it_is_redriven(
    singles: list[dict[str, str]], rows: list[tuple[Sign, dict[str, str]]], is_end: bool
) -> None:
    corrected = pairwise(singles)
    records = [record(n, _single(new), _single(old)) for n, (old, new) in enumerate(corrected, 1)]
    chunk = _chunk(rows)
    records += [record(50, _single(singles[0])), record(60, None, chunk) if is_end else record(60, chunk)]
    entries = _entries(fold(_FORMER, changes_of(records)))

    again = fold(_MENDED, _again(records, entries))

    assert again.unfoldable == []
    assert _totals(again, fold(_MENDED, _redriven(entries))) == _totals(fold(_MENDED, changes_of(records)))


def test_what_the_code_cannot_count_itself_waits_for_its_own_declarations() -> None:
    records = [record(1, {**image("sale", shop="a"), **_MUCH})]
    entries = _entries(fold(_FORMER, changes_of(records)))
    stricter = Plan((replace(_ALL, pk="TILL#{till}"), _SUMS))

    left = fold(stricter, _again(records, entries))
    after = fold(stricter, _again(records, entries + _entries(left)))

    assert ([one.names for one in left.unfoldable], left.deltas) == ([("all",)], [])
    assert after.unfoldable == []


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
    [first] = fold(_FORMER, changes_of(records)).unfoldable
    other = quarantine_item(quarantine_key("s", f"{1:040}#NewImage#0badcafe"), "", {}, ("all",), NOW)

    [again] = fold(_FORMER, _again(records, [other])).unfoldable

    assert (again.entry_id, again.names) == (first.entry_id, ("sums",))
