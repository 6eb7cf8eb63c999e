"""Declarations are values: they travel as the same text and come back equal, never change, and show what they say."""

from __future__ import annotations

import base64
import bz2
import copy
import datetime as datetime_module
import json
import pickle
import subprocess
import sys
import zoneinfo
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import combinations
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamodb_counters
from dynamodb_counters import (
    Aggregate,
    Attr,
    Attribute,
    Average,
    Condition,
    Count,
    Counter,
    Distinct,
    Event,
    Histogram,
    InvalidArgumentError,
    Items,
    Packed,
    Quota,
    Ranking,
    Ranks,
    Sum,
    TableKeys,
    Window,
)
from dynamodb_counters._declarations import Declaration, Direct, flatten, require_consistent
from dynamodb_counters._declarations.codec import Declarable, decode, encode
from dynamodb_counters._declarations.composites import with_parts
from dynamodb_counters._items.schema import is_reserved

_DURATIONS = st.timedeltas(timedelta(seconds=1), timedelta(days=36500))
_ATTRIBUTES = st.text(min_size=1, max_size=6).filter(lambda name: not is_reserved(name) and "[]" not in name)
_OPERANDS: st.SearchStrategy[Any] = st.one_of(
    st.text(max_size=6),
    st.integers(-(10**37), 10**37),
    st.decimals(-100, 100, places=3),
    st.sampled_from([Decimal("1E+2"), Decimal("1.50"), Decimal(1), 1, True, False]),
)
_CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    st.one_of(
        st.builds(lambda name, value: Attr(name).ne(value), _ATTRIBUTES, _OPERANDS),
        st.builds(lambda name, values: Attr(name).is_in(values), _ATTRIBUTES, st.lists(_OPERANDS, min_size=1)),
        st.builds(lambda name: Attr(name).not_exists(), _ATTRIBUTES),
    ),
    lambda inner: st.one_of(st.builds(Condition.__and__, inner, inner), inner.map(Condition.__invert__)),
    max_leaves=4,
)

_HIT = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7))
_DAILY = Distinct("daily", Event("view", pk="V#{id}", sk="V"), pk="URL#{url}", sk="DAY#{at:day}", member="who")


def test_members_that_are_kept_for_good_are_encoded_as_ever() -> None:
    assert encode(_DAILY._parts[:1]) == (
        '[{"":"Aggregate","name":"daily-members","source":{"":"Event","name":"view","pk":"V#{id}","sk":"V"},'
        '"pk":"URL#{url}","sk":"DAY#{at:day}#MEMBER#{who}","measures":{"items":{"":"Count"}}}]'
    )


_VIEWED = Aggregate("views", _HIT, by="url", views=Count(), bytes=Sum("bytes"))
_WHERE = Attr("status").is_in([200, 301]) & ~Attr("bot").exists()
_LATELY = Window("lately", _HIT, by="url", time="time", retention=timedelta(hours=25))
_MANY: tuple[Declaration, ...] = (
    *(replace(_VIEWED, name=f"aggregate-{number}", sk=f"STATISTICS#{number}", where=_WHERE) for number in range(12)),
    *(replace(_LATELY, name=f"window-{number}") for number in range(12)),
)


@pytest.mark.parametrize(("events", "attributes", "kilobytes"), [(1, 8, 0.4), (1, 20, 0.6), (20, 20, 2.0)])
def test_attributes_of_events_take_a_part_of_the_environment_too(
    events: int, attributes: int, kilobytes: float
) -> None:
    kinds = [Attribute(str, max_length=80), Attribute(int, minimum=0), datetime, Attribute(Decimal, required=False)]
    named = [{f"attribute_{n}_{m}": kinds[m % 4] for m in range(attributes)} for n in range(events)]
    sources = [Event(f"event_{n}", key=tuple(mapping)[:2], attributes=mapping) for n, mapping in enumerate(named)]
    declared = tuple(
        Aggregate(f"aggregate_{n}", source, by=source.fields[0], where=Attr(source.fields[1]).gt(n))
        for n, source in ((n, sources[n % events]) for n in range(100))
    )

    # docs/declarations.md says so.
    size = len(encode(declared, attributes=True)) - len(encode(declared))
    assert size == pytest.approx(kilobytes * 1024, rel=0.25)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_text_is_the_same_in_every_process_and_dozens_fit_a_quarter_of_the_environment(seed: str) -> None:
    script = "from tests.unit.declarations.test_codec import _MANY, encode; print(encode(_MANY))"
    run = [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; {script}"]
    result = subprocess.run(run, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed})
    assert result.stdout.strip() == encode(_MANY)
    assert len(encode(_MANY)) < 1024


def _packed(plain: Any) -> str:
    return base64.b85encode(bz2.compress(json.dumps(plain).encode())).decode()


_BAD = [_packed(plain) for plain in (5, [{"": "Unknown"}], [{"": "Event"}])]


@pytest.mark.parametrize("text", ["", "x", "é", "{}", encode(_MANY)[:-5], encode(_MANY)[5:], *_BAD])
def test_text_that_was_not_encoded_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="text="):
        decode(text)


@dataclass
class _Inner:
    size: int


_WEEK = timedelta(days=7)
_VIEW = Event("view", pk="URL#{url}", sk="T#{time}", attributes={"url": str, "time": datetime, "bytes": int})
_SIZES = Histogram("bytes", bounds=[0, 9])
_VIEWS = Aggregate("views", _VIEW, by=("url", "time:day"), n=Count(), sizes=_SIZES, retention=_WEEK)
_SHOWN: list[Any] = [
    _VIEW,
    replace(_VIEWS, where=Attr("bytes").gt(1)),
    Window("recent", _VIEW, pk="URL#{url}", time="time", measure=Sum("bytes"), longest=timedelta(days=30)),
    Distinct("visitors", _VIEW, pk="URL#{url}", sk="DAY#{time:day}", member="bytes", retention=_WEEK),
    Counter("stock", by=("sku", "at:day"), left=Count(), ranking=Ranking("left", "SKUS"), retention=_WEEK),
    Quota("calls", limit=5, per="day", by=("customer",)),
    Aggregate("odd", _HIT, pk="é\U0001f600 \"'$`\\#{url}", sk="{a-b}#{x_y}", on_expiry="subtract", n=Count()),
    Window("strict", _HIT, by="url", time="at", late="quarantine", future_tolerance=None, on_expiry="subtract"),
    Event("typed", key="id", version="id", attributes={"id": str, "n": list[Literal[1, 2]], "m": Attribute(_Inner)}),
    Event("hit", key=("page", "at"), packed=Packed("at")),
    Aggregate(
        "top",
        Items("order", where=Attr("n").between(1, Decimal("1.5")), pk="C#{c}", keys=TableKeys("PK", "SK")),
        by="c",
        measures={"n": Sum("n", cap=Decimal(2)), "m": Average("m")},
        ranking=Ranking("n", "ALL"),
    ),
    Quota("hours", limit=5, per=_WEEK, tz=zoneinfo.ZoneInfo("Europe/Berlin")),
]
_COUNTED = [declaration for declaration in _SHOWN if isinstance(declaration, Aggregate | Window)]


@pytest.mark.parametrize(("declared", "name"), [(_VIEW, "attributes"), (_VIEWS, "measures")])
def test_a_declaration_does_not_change(declared: Any, name: str) -> None:
    mapping = getattr(declared, name)
    before = dict(mapping)
    named: list[Any] = [("__delitem__", next(iter(before))), ("pop", "n", None), ("clear",), ("popitem",)]
    named += [("update", before), ("__ior__", before), ("__setitem__", "more", Count()), ("setdefault", "more", 1)]
    for method, *arguments in named:
        with pytest.raises(TypeError, match=r"dataclasses\.replace"):
            getattr(mapping, method)(*arguments)
    values = dict(before)
    changed = replace(declared, **{name: values})
    values.clear()
    assert changed == declared
    assert getattr(declared, name) == before


def _changed(declared: Any, where: Condition | None, retention: timedelta | None) -> Any:
    if isinstance(declared, Counter):
        return declared
    of_event = {"retention": retention, "attributes": None} if isinstance(declared.source, Event) else {}
    return replace(declared, source=replace(declared.source, **of_event), where=where)


@given(st.lists(st.builds(_changed, st.sampled_from(_COUNTED), st.none() | _CONDITIONS, st.none() | _DURATIONS)))
def test_declarations_come_back_as_they_were(drawn: list[Declaration]) -> None:
    text = encode(tuple(drawn))

    assert text.isascii()
    assert decode(text) == tuple(drawn)
    # repr, unlike ==, distinguishes 1 from True and Decimal("1.50") from Decimal("1.5").
    assert repr(decode(text)) == repr(tuple(drawn))
    assert encode(decode(text)) == text


@pytest.mark.parametrize("declared", _SHOWN, ids=lambda declaration: declaration.name)
def test_a_declaration_is_what_its_copies_and_the_call_of_its_repr_are(declared: Any) -> None:
    names = {"datetime": datetime_module, "zoneinfo": zoneinfo, "Decimal": Decimal}
    names |= {name: getattr(dynamodb_counters, name) for name in dynamodb_counters.__all__}

    copies = replace(declared), copy.deepcopy(declared), pickle.loads(pickle.dumps(declared))
    for other in (*copies, eval(repr(declared), names)):
        assert {other: 1}[declared] == 1
    assert hash(replace(declared, name="other")) != hash(declared)


def test_the_mappings_and_sequences_in_an_attribute_do_not_change() -> None:
    attributes: dict[str, Any] = {"a": str}
    attribute = Attribute(dict, attributes={"b": Attribute(dict, attributes=attributes)})
    attributes["c"] = int

    assert attribute == Attribute(dict, attributes={"b": Attribute(dict, attributes={"a": str})})
    assert hash(attribute) == hash(copy.deepcopy(attribute))
    with pytest.raises(TypeError, match=r"dataclasses\.replace"):
        attribute.attributes["b"].attributes.clear()
    assert hash(Condition("eq", "a", [1])) == hash(Attr("a").eq(1))  # type: ignore[arg-type]


# Keys and groups: no two declarations of a table share a name or could write one item


def test_the_name_of_ranks_means_all_digits() -> None:
    view = Event("view", key=("url", "time"))
    declared = Ranks("board", view, score="ms", least=0, most=10**6)._parts
    assert [part.name for part in declared] == ["board-3", "board-2", "board-1", "board"]
    others = [Aggregate("board-4", view), Aggregate("cup-1", view)]
    assert with_parts(["board", "cup"], [*declared, *others]) == {"cup", *(part.name for part in declared)}
    assert with_parts(["board-1"], declared) == {"board-1"}


@pytest.mark.parametrize(
    ("per", "tz", "moment", "start", "end"),
    [
        ("day", "Europe/Berlin", "2026-10-25T12:00", "2026-10-24T22:00", "2026-10-25T23:00"),
        ("month", "Asia/Kathmandu", "2026-02-01T00:00", "2026-01-31T18:15", "2026-02-28T18:15"),
        (timedelta(minutes=7), "UTC", "1970-01-01T00:07", "1970-01-01T00:07", "1970-01-01T00:14"),
    ],
)
def test_a_period_begins_and_ends_where_its_calendar_says(per: Any, tz: str, moment: str, start: str, end: str) -> None:
    at, *expected = (datetime.fromisoformat(f"{text}Z").timestamp() for text in (moment, start, end))
    period = Quota("calls", limit=1, per=per, tz=tz)._period(at)
    assert [period.start, period.end] == expected


def test_events_that_are_counted_may_be_given_again() -> None:
    require_consistent((_VIEWED,), [_HIT, Event("note", pk="NOTE#{url}", sk="{id}")])


_N = {"n": Count()}
_VISIT = Event("view", key=("url", "time", "clientId"))
_TEMPLATED = Event("view", pk="URL#{url}#{lang}", sk="T#{time}")
_OPEN = Event("view", pk="URL#{url}", sk="{time}")
_BESTS = Aggregate("players", Event("path", key=("player", "path")), by="player", measures=_N)


@pytest.mark.parametrize(
    ("declaration", "pk", "sk"),
    [
        (_VISIT, "view#{url}", "view#{time}#{clientId}"),
        (Event("sale", key="id"), "sale#{id}", "sale"),
        (Aggregate("views", _VISIT, by="url", measures=_N), "view#{url}", "views"),
        (Aggregate("daily", _VISIT, by=["url", "time:day"], measures=_N), "view#{url}", "daily#{time:day}"),
        (Aggregate("visitors", _VISIT, by="clientId", measures=_N), "visitors#{clientId}", "visitors"),
        (Aggregate("days", _VISIT, by=("time:day", "url"), measures=_N), "days#{time:day}", "days#{url}"),
        (Aggregate("site", _VISIT, measures=_N), "site", "site"),
        (Aggregate("tags", _VISIT, by="tags[]", measures=_N), "tags#{tags[]}", "tags"),
        (Aggregate("views", _TEMPLATED, by=("url", "lang"), measures=_N), "URL#{url}#{lang}", "views"),
        (Aggregate("views", _TEMPLATED, by="url", measures=_N), "views#{url}", "views"),
        (Aggregate("views", _OPEN, by="url", measures=_N), "views#{url}", "views"),
        (Aggregate("bests", _BESTS, by="player", measures=_N), "path#{player}", "bests"),
        (Aggregate("all", Items("order", pk="C#{c}"), by="c", measures=_N), "all#{c}", "all"),
        (Counter("stock", by=("sku", "at:day")), "stock#{sku}", "stock#{at:day}"),
        (Window("hours", _VISIT, by="url", time="time"), "view#{url}", None),
        (Window("hours", _VISIT, by=("url", "clientId"), time="time"), "hours#{url}#{clientId}", None),
        (Window("hours", _VISIT, time="time"), "hours", None),
        (Distinct("visitors", _VISIT, by="url", member="clientId"), "view#{url}", "visitors"),
        (Distinct("visitors", _VISIT, member="clientId"), "visitors", "visitors"),
    ],
)
def test_an_item_lies_next_to_its_source_if_that_names_the_group(declaration: Any, pk: str, sk: str | None) -> None:
    assert (declaration.pk, getattr(declaration, "sk", None)) == (pk, sk)


def test_templates_and_the_fields_that_make_them_are_the_same_declaration() -> None:
    by = Aggregate("views", _VISIT, by="url", measures=_N)
    assert by == Aggregate("views", _VISIT, pk="view#{url}", sk="views", measures=_N)
    assert decode(encode((by,))) == (by,)
    assert replace(by, measures={"m": Count()}).pk == by.pk
    assert Quota("calls", limit=1, per="day", by="customer").by == ("customer",)


_some_names = st.sampled_from(["a", "b", "a-b", "a_b", "ab", "MEMBER", "window", "LAYOUT", "T"])
_plain = st.sampled_from(["a", "b", "c", "MEMBER"])
_some_fields = st.lists(st.sampled_from(["a", "b", "c", "MEMBER", "a.b", "at:day"]), unique=True, max_size=4)
_events = st.builds(Event, _some_names, key=st.lists(_plain, unique=True, min_size=1, max_size=4))
_key_texts = st.text(st.sampled_from("ab#%~-MEMBER"), min_size=1, max_size=4)


@st.composite
def _declared(draw: st.DrawFn) -> tuple[Declarable, ...]:
    event, declarations = draw(_events), list[Declarable]()
    for name in draw(st.lists(_some_names, unique=True, min_size=1, max_size=4)):
        fields = draw(_some_fields)
        below: list[Event | Aggregate] = [event, *(part for part in declarations if isinstance(part, Aggregate))]
        source = draw(st.sampled_from(below))
        kind = draw(st.sampled_from(["aggregate", "window", "distinct", "counter"]))
        if name == event.name:
            continue
        if kind == "window":
            declarations.append(Window(name, event, by=fields, time="at"))
        elif kind == "counter":
            declarations.append(Counter(name, by=fields, n=Count()))
        elif kind == "distinct":
            declarations.append(Distinct(name, event, by=fields, member="member"))
        else:
            names = [field for field in fields if isinstance(source, Event) or field in source.fields]
            declarations.append(Aggregate(name, source, by=names, measures={"n": Count()}))
    return tuple(declarations)


@given(_declared(), st.data())
def test_no_two_declarations_share_an_item_if_fields_make_their_keys(
    declared: tuple[Declarable, ...], data: st.DataObject
) -> None:
    parts = flatten(declared)
    require_consistent(parts)
    owners = {part.name: part for item in parts for part in (item, item.source) if not isinstance(part, Items | Direct)}
    for first, second in combinations(owners.values(), 2):
        keys = [
            tuple(
                template.render({name: data.draw(_key_texts) for name in template.fields})
                for template in (part._pk_template, part._sk_template)
            )
            for part in (first, second)
        ]
        assert keys[0] != keys[1]


def _packed_views(packed: Packed | None, **changes: Any) -> tuple[Declaration, ...]:
    event = Event("view", pk="URL#{url}", sk="T#{time}", packed=packed)
    return flatten([Aggregate("views", event, **{"pk": "SITE", "sk": "ALL", **changes})])


def test_a_condition_cannot_look_at_what_a_packed_event_lacks() -> None:
    for name in ("pk", "sk", "ttl"):
        where = Attr("size").gt(1) & Attr(name).exists()
        require_consistent(_packed_views(None, where=where))

        with pytest.raises(InvalidArgumentError, match=f"invalid where='{name}'"):
            _packed_views(Packed("time"), where=where)


def test_a_packed_event_takes_the_keys_of_its_chunks_and_leaves_its_own() -> None:
    packed, of_tenants = Packed("time"), Packed("time", parts=4, partition_by="url", tenant="url")
    require_consistent(_packed_views(packed, pk="URL#{url}", sk="T#{time}"))
    require_consistent(_packed_views(packed, pk="PACK#{url}#0#{time}", sk="A#{time}"))
    for layout, pk, sk in (
        (packed, "PACK#view#{url}", "A#{time}"),
        (packed, "PACK#{url}", "LAYOUT"),
        (of_tenants, "PACK#{url}#0#{time}", "A#{time}"),
    ):
        with pytest.raises(InvalidArgumentError, match="invalid pk="):
            require_consistent(_packed_views(layout, pk=pk, sk=sk))
    assert repr(decode(encode(_packed_views(of_tenants)))) == repr(_packed_views(of_tenants))
