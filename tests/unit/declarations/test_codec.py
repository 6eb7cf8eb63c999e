"""Declarations are values: they travel as the same text and come back equal, never change, and show what they say."""

from __future__ import annotations

import base64
import bz2
import copy
import datetime as datetime_module
import json
import pickle
import string
import subprocess
import sys
import zoneinfo
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
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
    Sum,
    TableKeys,
    Window,
)
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import decode, encode
from dynamodb_counters._items.table_schema import is_reserved

_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,20}", fullmatch=True).filter(lambda name: name != "quarantine")
_FIELDS = st.lists(st.sampled_from(["url", "clientId", "a-b", "x_y"]), unique=True, max_size=3)
_LITERALS = st.text(string.ascii_letters + "é\U0001f600 \"'$`\\", min_size=1, max_size=8)
_TEMPLATES = st.builds(lambda text, fields: "#".join([text, *(f"{{{name}}}" for name in fields)]), _LITERALS, _FIELDS)
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
_EVENTS = st.builds(Event, _NAMES, pk=_TEMPLATES, sk=_TEMPLATES, retention=st.none() | _DURATIONS)
_ITEMS = st.builds(
    Items,
    _NAMES,
    where=st.none() | _CONDITIONS,
    pk=st.none() | _TEMPLATES,
    keys=st.none() | st.sampled_from([TableKeys("id"), TableKeys("PK", "SK", ttl="expiresAt")]),
)
_MEASURES = st.one_of(st.just(Count()), st.builds(Sum, _ATTRIBUTES))
_EXPIRY = st.sampled_from(["keep", "subtract"])
_AGGREGATES = st.builds(
    Aggregate,
    name=_NAMES,
    source=_EVENTS | _ITEMS,
    pk=_TEMPLATES,
    sk=_TEMPLATES,
    measures=st.dictionaries(st.sampled_from(["n", "bytes", "a1"]), _MEASURES, min_size=1),
    where=st.none() | _CONDITIONS,
    on_expiry=_EXPIRY,
)
_COUNTERS = st.builds(
    Counter,
    name=_NAMES,
    by=_FIELDS.map(lambda names: (*names, "at:day")),
    measures=st.dictionaries(st.sampled_from(["n", "a1"]), st.just(Count()), min_size=1),
    retention=st.none() | _DURATIONS,
)
_WINDOWS = st.builds(
    Window,
    name=_NAMES,
    source=_EVENTS | _ITEMS,
    pk=_TEMPLATES,
    time=_ATTRIBUTES,
    retention=st.none() | _DURATIONS,
    measure=_MEASURES,
    where=st.none() | _CONDITIONS,
    late=st.sampled_from(["drop", "quarantine"]),
    future_tolerance=st.none() | _DURATIONS,
    on_expiry=_EXPIRY,
)


@given(st.lists(st.one_of(_AGGREGATES, _COUNTERS, _WINDOWS), max_size=4).map(tuple))
def test_declarations_come_back_as_they_were(declarations: tuple[Declaration, ...]) -> None:
    text = encode(declarations)

    assert text.isascii()
    assert decode(text) == declarations
    # repr, unlike ==, distinguishes 1 from True and Decimal("1.50") from Decimal("1.5").
    assert repr(decode(text)) == repr(declarations)
    assert encode(decode(text)) == text


_HIT = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7))
_DAILY = Distinct("daily", Event("view", pk="V#{id}", sk="V"), pk="URL#{url}", sk="DAY#{at:day}", member="who")


def test_members_that_are_kept_for_good_are_encoded_as_ever() -> None:
    assert encode(_DAILY._parts[:1]) == (
        '[{"":"Aggregate","name":"daily-members","source":{"":"Event","name":"view","pk":"V#{id}","sk":"V"},'
        '"pk":"URL#{url}","sk":"DAY#{at:day}#MEMBER#{who}","measures":{"items":{"":"Count"}}}]'
    )


_MANY: tuple[Declaration, ...] = tuple(
    declaration
    for number in range(12)
    for declaration in (
        Aggregate(
            f"aggregate-{number}",
            _HIT,
            pk="URL#{url}",
            sk=f"STATISTICS#{number}",
            measures={"views": Count(), "bytes": Sum("bytes")},
            where=Attr("status").is_in([200, 301]) & ~Attr("bot").exists(),
        ),
        Window(f"window-{number}", _HIT, pk="URL#{url}", time="time", retention=timedelta(hours=25)),
    )
)


def test_dozens_of_declarations_fit_a_quarter_of_the_environment() -> None:
    assert len(encode(_MANY)) < 1024


@pytest.mark.parametrize(("events", "attributes", "kilobytes"), [(1, 8, 0.4), (1, 20, 0.6), (20, 20, 2.0)])
def test_attributes_of_events_take_a_part_of_the_environment_too(
    events: int, attributes: int, kilobytes: float
) -> None:
    kinds = [Attribute(str, max_length=80), Attribute(int, minimum=0), datetime, Attribute(Decimal, required=False)]
    named = [{f"attribute_{n}_{m}": kinds[m % 4] for m in range(attributes)} for n in range(events)]
    sources = [Event(f"event_{n}", key=tuple(each)[:2], attributes=each) for n, each in enumerate(named)]
    declared = tuple(
        Aggregate(f"aggregate_{n}", source, by=source.fields[0], where=Attr(source.fields[1]).gt(n))
        for n, source in ((n, sources[n % events]) for n in range(100))
    )

    # docs/aggregates.md says so.
    size = len(encode(declared, attributes=True)) - len(encode(declared))
    assert size == pytest.approx(kilobytes * 1024, rel=0.25)


def test_the_text_is_the_same_in_every_process() -> None:
    script = "from tests.unit.declarations.test_codec import _MANY, encode; print(encode(_MANY))"
    path = ["-c", f"import sys; sys.path[:0] = {sys.path!r}; {script}"]
    texts = {
        subprocess.run(
            [sys.executable, *path], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout.strip()
        for seed in ("1", "2")
    }

    assert texts == {encode(_MANY)}


def _packed(plain: Any) -> str:
    return base64.b85encode(bz2.compress(json.dumps(plain).encode())).decode()


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "é", "{}"),
        *(encode(_MANY)[:-5], encode(_MANY)[5:]),
        *map(_packed, (5, [{"": "Unknown"}], [{"": "Event"}])),
    ],
)
def test_text_that_was_not_encoded_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="text="):
        decode(text)


@dataclass
class _Inner:
    size: int


_WEEK = timedelta(days=7)
_VIEW = Event("view", pk="URL#{url}", sk="T#{time}", attributes={"url": str, "time": datetime, "bytes": int})
_VIEWS = Aggregate(
    "views",
    _VIEW,
    pk="URL#{url}",
    sk="DAY#{time:day}",
    measures={"n": Count(), "sizes": Histogram("bytes", bounds=[0, 9])},
    where=Attr("bytes").gt(1),
    retention=_WEEK,
)
_DECLARED: list[Any] = [
    _VIEW,
    _VIEWS,
    Window("recent", _VIEW, pk="URL#{url}", time="time", measure=Sum("bytes"), longest=timedelta(days=30)),
    Distinct("visitors", _VIEW, pk="URL#{url}", sk="DAY#{time:day}", member="bytes", retention=_WEEK),
    Counter("stock", by=("sku", "at:day"), left=Count(), ranking=Ranking("left", "SKUS"), retention=_WEEK),
    Quota("calls", limit=5, per="day", by=("customer",)),
]


@pytest.mark.parametrize("declared", _DECLARED, ids=lambda each: type(each).__name__)
def test_a_declaration_has_the_hash_of_its_equals(declared: Any) -> None:
    for other in (replace(declared), copy.deepcopy(declared), pickle.loads(pickle.dumps(declared))):
        assert {other: 1}[declared] == 1
    assert hash(replace(declared, name="other")) != hash(declared)


@pytest.mark.parametrize(("declared", "name"), [(_VIEW, "attributes"), (_VIEWS, "measures")])
def test_a_declaration_does_not_change(declared: Any, name: str) -> None:
    held = getattr(declared, name)
    before = dict(held)
    changes: list[Any] = [
        lambda: held.update(before),
        lambda: held.__setitem__("more", Count()),
        lambda: held.__delitem__(next(iter(before))),
        lambda: held.__ior__(before),
        lambda: held.setdefault("more", 1),
        held.clear,
        held.popitem,
        lambda: held.pop("n", None),
    ]
    for change in changes:
        with pytest.raises(TypeError, match=r"dataclasses\.replace"):
            change()
    given = dict(before)
    changed = replace(declared, **{name: given})
    given.clear()
    assert changed == declared
    assert getattr(declared, name) == before


_SHOWN: list[Any] = [
    *_DECLARED,
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


@pytest.mark.parametrize("declared", _SHOWN, ids=lambda each: each.name)
def test_the_repr_of_a_declaration_is_a_call_that_makes_it(declared: Any) -> None:
    names = {"datetime": datetime_module, "zoneinfo": zoneinfo, "Decimal": Decimal}
    names |= {name: getattr(dynamodb_counters, name) for name in dynamodb_counters.__all__}

    assert eval(repr(declared), names) == declared


def test_the_mappings_and_sequences_in_an_attribute_do_not_change() -> None:
    given: dict[str, Any] = {"a": str}
    attribute = Attribute(dict, attributes={"b": Attribute(dict, attributes=given)})
    given["c"] = int

    assert attribute == Attribute(dict, attributes={"b": Attribute(dict, attributes={"a": str})})
    assert hash(attribute) == hash(copy.deepcopy(attribute))
    with pytest.raises(TypeError, match=r"dataclasses\.replace"):
        attribute.attributes["b"].attributes.clear()
    assert hash(Condition("eq", "a", [1])) == hash(Attr("a").eq(1))  # type: ignore[arg-type]
