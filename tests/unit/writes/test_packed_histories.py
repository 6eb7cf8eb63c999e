"""Packed events against a dict: any values, in any order, by processes that remember different parts of the log."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Event, Packed
from dynamodb_counters._items.chunks import decode_chunk
from tests.unit.writes.conftest import Site

_PACKED = Packed("at", timedelta(minutes=10), parts=3, partition_by="shop", chunk_bytes=1024)
_SALE = Event("sale", pk="SHOP#{shop}", sk="T#{at}#{till}", packed=_PACKED)

_KEYS = st.one_of(
    st.text(alphabet="#%~\0\x7f\n 2350é\u0301\U0001f600", max_size=4),
    st.sampled_from(["", "#", "%", "%~", "%23", "e\u0301", "é", "a" * 3000, "a" * 2999 + "b", "1"]),
    st.sampled_from([1, 0, -1, Decimal("1.0"), Decimal("1.50"), Decimal("1E+2"), Decimal("-0"), 10**37]),
)
_WHOLE = st.integers(-(10**37), 10**37)
_NOTES = st.one_of(st.none(), st.text(max_size=20), st.binary(max_size=300), _WHOLE, st.sets(_WHOLE, min_size=1))
_SALES = st.fixed_dictionaries({"shop": _KEYS, "till": _KEYS, "at": st.sampled_from([0, 0, 599, 600]), "note": _NOTES})


def _live(site: Site) -> list[dict[str, Any]]:
    """The events that a log comes to, by its signs."""
    live: list[dict[str, Any]] = []
    for item in sorted(site.table.items(), key=lambda item: (item["pk"]["S"], item["sk"]["S"])):
        for row in decode_chunk(item["_chunk"]).all_rows() if "_chunk" in item else []:
            if row.sign == "+":
                live.append(dict(row.values))
            elif row.sign == "-":
                live.remove(dict(row.values))
    return live


def _key(sale: dict[str, Any]) -> tuple[str, str]:
    return _SALE._pk_template.render(sale), _SALE._sk_template.render(sale)


@given(
    st.lists(
        st.tuples(st.sampled_from(["accept", "accept", "retract"]), st.integers(0, 2), st.lists(_SALES, max_size=5)),
        max_size=10,
    )
)
def test_any_history_comes_to_what_a_dict_comes_to(history: list[tuple[str, int, list[dict[str, Any]]]]) -> None:
    site, number = Site(), count()
    site.table.page_items = 2
    begin = int(site.clock()) // 600 * 600 - 600
    processes = [site.process() for _ in range(3)]
    there: dict[tuple[str, str], dict[str, Any] | None] = {}
    for act, index, drawn in history:
        sales = [{**sale, "at": begin + sale["at"], "n": next(number)} for sale in drawn]
        if act == "retract":
            for sale in sales:
                # Only the key decides which one is meant.
                told = processes[index].retract(_SALE, {**sale, "note": "?"})
                assert told == (there.get(_key(sale)) is not None)
                there[_key(sale)] = None
            continue
        wanted = []
        for sale in sales:
            wanted.append("duplicate" if _key(sale) in there else "accepted")
            there.setdefault(_key(sale), sale)
        outcomes = processes[index].accept_many(_SALE, sales)
        assert [outcome.status for outcome in outcomes] == wanted

    live = [sale for sale in there.values() if sale is not None]
    assert sorted(int(row["n"]["N"]) for row in _live(site)) == sorted(sale["n"] for sale in live)
    assert {outcome.status for outcome in site.process().accept_many(_SALE, live)} <= {"duplicate"}
