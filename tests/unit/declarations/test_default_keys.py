"""Keys made from names of fields: where items lie, and that no two declarations ever share one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Count, Counter, Distinct, Event, InvalidArgumentError, Items, Quota, Window
from dynamodb_counters._declarations import Direct
from dynamodb_counters._declarations.codec import decode, encode
from dynamodb_counters._declarations.consistency import Declarable, flatten, require_consistent

_N = {"n": Count()}
_VIEW = Event("view", key=("url", "time", "clientId"))
_TEMPLATED = Event("view", pk="URL#{url}#{lang}", sk="T#{time}")
_OPEN = Event("view", pk="URL#{url}", sk="{time}")
_PLAYERS = Aggregate("players", Event("path", key=("player", "path")), by="player", measures=_N)


@pytest.mark.parametrize(
    ("made", "pk", "sk"),
    [
        (_VIEW, "view#{url}", "view#{time}#{clientId}"),
        (Event("sale", key="id"), "sale#{id}", "sale"),
        (Aggregate("views", _VIEW, by="url", measures=_N), "view#{url}", "views"),
        (Aggregate("daily", _VIEW, by=["url", "time:day"], measures=_N), "view#{url}", "daily#{time:day}"),
        (Aggregate("visitors", _VIEW, by="clientId", measures=_N), "visitors#{clientId}", "visitors"),
        (Aggregate("days", _VIEW, by=("time:day", "url"), measures=_N), "days#{time:day}", "days#{url}"),
        (Aggregate("site", _VIEW, by=(), measures=_N), "site", "site"),
        (Aggregate("tags", _VIEW, by="tags[]", measures=_N), "tags#{tags[]}", "tags"),
        (Aggregate("views", _TEMPLATED, by=("url", "lang"), measures=_N), "URL#{url}#{lang}", "views"),
        (Aggregate("views", _TEMPLATED, by="url", measures=_N), "views#{url}", "views"),
        (Aggregate("views", _OPEN, by="url", measures=_N), "views#{url}", "views"),
        (Aggregate("bests", _PLAYERS, by="player", measures=_N), "path#{player}", "bests"),
        (Aggregate("all", Items("order", pk="C#{c}"), by="c", measures=_N), "all#{c}", "all"),
        (Counter("stock", by=("sku", "at:day")), "stock#{sku}", "stock#{at:day}"),
        (Window("hours", _VIEW, by="url", time="time"), "view#{url}", None),
        (Window("hours", _VIEW, by=("url", "clientId"), time="time"), "hours#{url}#{clientId}", None),
        (Window("hours", _VIEW, by=(), time="time"), "hours", None),
        (Distinct("visitors", _VIEW, by="url", member="clientId"), "view#{url}", "visitors"),
    ],
)
def test_an_item_lies_next_to_its_source_if_that_names_the_group(made: Any, pk: str, sk: str | None) -> None:
    assert (made.pk, getattr(made, "sk", None)) == (pk, sk)


def test_templates_and_the_fields_that_make_them_are_the_same_declaration() -> None:
    by = Aggregate("views", _VIEW, by="url", measures=_N)
    assert by == Aggregate("views", _VIEW, pk="view#{url}", sk="views", measures=_N)
    assert decode(encode((by,))) == (by,)
    assert replace(by, measures={"m": Count()}).pk == by.pk


def test_the_fields_of_a_quota_are_a_tuple_however_they_are_given() -> None:
    assert Quota("calls", limit=1, per="day", by="customer").by == Quota("c", limit=1, per="day", by=["customer"]).by


@pytest.mark.parametrize(
    ("make", "argument", "value"),
    [
        (lambda: Event("view"), "key", None),
        (lambda: Event("view", key=()), "key", ()),
        (lambda: Event("view", key="url", pk="URL#{url}"), "key", "url"),
        (lambda: Event("view", pk="URL#{url}"), "sk", ""),
        (lambda: Event("view", key="tags[]"), "key", "tags[]"),
        (lambda: Event("view", key=("url", "url")), "key", ("url", "url")),
        (lambda: Event("view", key=("url", 1)), "key", 1),  # type: ignore[arg-type]
        (lambda: Event("view", key="url", attributes={"uri": str}), "key", "url"),
        (lambda: Event("PACK", key="url"), "name", "PACK"),
        (lambda: Aggregate("views", _VIEW, by="url", sk="V", measures=_N), "by", "url"),
        (lambda: Aggregate("views", _VIEW, by="url}#{x", measures=_N), "by", "url}#{x"),
        (lambda: Aggregate("views", _VIEW, by="ttl", measures=_N), "by", "ttl"),
        (lambda: Aggregate("views", _VIEW, by={"url"}, measures=_N), "by", {"url"}),  # type: ignore[arg-type]
        (lambda: Aggregate("WINDOW", _VIEW, by="url", measures=_N), "name", "WINDOW"),
        (lambda: Aggregate("best", _PLAYERS, by="team", measures=_N), "by", "team"),
        (lambda: Window("hours", _VIEW, by="tags[]", time="time"), "by", "tags[]"),
        (lambda: Distinct("visitors", Event("v", key="a", attributes={"a": str}), by="b", member="a"), "by", "b"),
    ],
)
def test_fields_and_templates_are_refused_together_and_fields_that_are_none(
    make: Callable[[], object], argument: str, value: object
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        make()

    assert (refused.value.argument, refused.value.value) == (argument, value)


_names = st.sampled_from(["a", "b", "a-b", "a_b", "ab", "MEMBER", "window", "LAYOUT", "T"])
_plain = st.sampled_from(["a", "b", "c", "MEMBER"])
_fields = st.lists(st.sampled_from(["a", "b", "c", "MEMBER", "a.b", "at:day"]), unique=True, max_size=4)
_events = st.builds(Event, _names, key=st.lists(_plain, unique=True, min_size=1, max_size=4))
_texts = st.text(st.sampled_from("ab#%~-MEMBER"), min_size=1, max_size=4)


@st.composite
def _declared(draw: st.DrawFn) -> tuple[Declarable, ...]:
    event, found = draw(_events), list[Declarable]()
    for name in draw(st.lists(_names, unique=True, min_size=1, max_size=4)):
        fields = draw(_fields)
        below: list[Event | Aggregate] = [event, *(one for one in found if isinstance(one, Aggregate))]
        source = draw(st.sampled_from(below))
        kind = draw(st.sampled_from(["aggregate", "window", "distinct", "counter"]))
        if name == event.name:
            continue
        if kind == "window":
            found.append(Window(name, event, by=fields, time="at"))
        elif kind == "counter":
            found.append(Counter(name, by=fields, n=Count()))
        elif kind == "distinct":
            found.append(Distinct(name, event, by=fields, member="member"))
        else:
            known = [field for field in fields if isinstance(source, Event) or field in source.fields]
            found.append(Aggregate(name, source, by=known, measures={"n": Count()}))
    return tuple(found)


@given(_declared(), st.data())
def test_no_two_declarations_share_an_item_if_fields_make_their_keys(
    declared: tuple[Declarable, ...], data: st.DataObject
) -> None:
    parts = flatten(declared)
    require_consistent(parts)
    writers = {part.name: part for one in parts for part in (one, one.source) if not isinstance(part, Items | Direct)}
    for one, two in combinations(writers.values(), 2):
        keys = [
            tuple(
                template.render({name: data.draw(_texts) for name in template.fields})
                for template in (part._pk_template, part._sk_template)
            )
            for part in (one, two)
        ]
        assert keys[0] != keys[1]
