"""Declarations: their keys and groups, and that no two of a table share a name or could write one item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import (
    Aggregate,
    Attr,
    Count,
    Counter,
    Distinct,
    Event,
    Extremes,
    InvalidArgumentError,
    Items,
    Packed,
    Percentiles,
    Quota,
    Sum,
    Window,
)
from dynamodb_counters._declarations import Declaration, Direct, flatten, require_consistent
from dynamodb_counters._declarations.codec import decode, encode
from dynamodb_counters._declarations.composites import group_fields, read_by, with_parts
from dynamodb_counters._declarations.consistency import Declarable
from dynamodb_counters._fold.plan import Plan

_VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")

_REQUEST = Event("request", key="id")
PATH = Event("path", pk="PLAYER#{player}", sk="PATH#{path}")
PLAYERS = Aggregate("players", PATH, pk="PLAYER#{player}", sk="STATISTICS", measures={"paths": Count()})


def test_measures_have_names_by_keyword_or_in_one_mapping() -> None:
    declare: Any = Aggregate
    measures: dict[str, Any] = {"n": Count(), "paid": Sum("cents")}
    assert declare("views", _VIEW, by="url", **measures) == declare("views", _VIEW, by="url", measures=measures)
    assert declare("views", _VIEW, by="url").measures == {"views": Count()}


def test_a_cycle_cannot_be_written_down() -> None:
    one = Aggregate("one", PATH, pk="ONE", sk="ALL")
    two = Aggregate("two", one, pk="TWO", sk="ALL")
    loop = Aggregate("loop", Event("players", pk="PLAYER#{player}", sk="STATISTICS"), pk="LOOP", sk="ALL")

    # A source must exist before what looks at it, and a declaration does not change.
    with pytest.raises(AttributeError):
        one.source = two  # type: ignore[misc]
    # Another "one" over "two" over the first "one" can be made: two of one name. So can one by way of an event.
    for declared in ((replace(one, source=two), two, one), (replace(one, source=two), two), (PLAYERS, loop)):
        with pytest.raises(InvalidArgumentError, match=r"invalid name='(one|players)': expected one declaration"):
            require_consistent(declared)


def test_a_read_of_its_own_names_a_group_by_its_partition() -> None:
    [latency] = Percentiles("latency", _REQUEST, attribute="ms")._parts
    [slowest] = Extremes("slowest", _REQUEST, by="route", attribute="ms")._parts
    assert (read_by(latency), group_fields(latency)) == ("distribution", ())
    assert (read_by(slowest), group_fields(slowest)) == ("extremes", ("route",))


def test_the_name_of_a_distinct_means_its_members_too() -> None:
    declared = Distinct("visitors", Event("view", key=("url", "time")), by="url", member="client")._parts
    assert with_parts(["visitors"], declared) == {"visitors", "visitors-members"}


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("per", "tz", "moment", "start", "end"),
    [
        ("day", "Europe/Berlin", _utc(2026, 10, 25, 12), _utc(2026, 10, 24, 22), _utc(2026, 10, 25, 23)),
        ("month", "Asia/Kathmandu", _utc(2026, 2, 1), _utc(2026, 1, 31, 18, 15), _utc(2026, 2, 28, 18, 15)),
        (timedelta(minutes=7), "UTC", _utc(1970, 1, 1, 0, 7), _utc(1970, 1, 1, 0, 7), _utc(1970, 1, 1, 0, 14)),
    ],
)
def test_a_period_begins_and_ends_where_its_calendar_says(
    per: Any, tz: str, moment: datetime, start: datetime, end: datetime
) -> None:
    found = Quota("calls", limit=1, per=per, tz=tz)._period(moment.timestamp())

    assert (found.start, found.end) == (start.timestamp(), end.timestamp())


def _aggregate(name: str, pk: str, sk: str, source: Event = _VIEW) -> Aggregate:
    return Aggregate(name, source, pk=pk, sk=sk, measures={"n": Count()})


def _window(name: str, pk: str, source: Event = _VIEW) -> Window:
    return Window(name, source, pk=pk, time="time")


_VIEWS = _aggregate("views", "URL#{url}", "STATISTICS")

_CLASHES: dict[str, tuple[Declaration, ...]] = {
    "two aggregates of one name": (_VIEWS, _aggregate("views", "OTHER#{url}", "STATISTICS")),
    "a window and an aggregate of one name": (_VIEWS, _window("views", "W#{url}")),
    "an aggregate named like an event": (_aggregate("view", "W#{url}", "STATISTICS"),),
    "two events of one name": (_VIEWS, _aggregate("jobs", "C#{c}", "N", Event("view", pk="C#{c}", sk="JOB#{id}"))),
    "a constant key that a value can take": (_VIEWS, _aggregate("root", "URL#home", "STATISTICS")),
    "an aggregate that an event can be": (_aggregate("a", "URL#{url}", "T#{x}#CID#TOTAL"),),
    "two events that can be each other": (
        _VIEWS,
        _aggregate("n", "N", "N", Event("visit", pk="URL#{url}", sk="T#{time}#CID#{visitor}")),
    ),
    "a bucket that an aggregate can be": (_aggregate("a", "URL#{url}", "WINDOW#{x}#H#{y}"), _window("w", "URL#{url}")),
    "a bucket that an event can be": (_window("w", "C#{c}", Event("job", pk="C#{c}", sk="{a}#{b}#{c}#{d}")),),
}


@pytest.mark.parametrize("clash", _CLASHES)
@pytest.mark.parametrize("check", [require_consistent, Plan])
def test_declarations_that_meet_are_refused(clash: str, check: Callable[[tuple[Declaration, ...]], object]) -> None:
    declarations = _CLASHES[clash]
    for order in (declarations, declarations[::-1]):
        with pytest.raises(InvalidArgumentError) as refused:
            check(order)

        assert refused.value.argument in ("name", "pk", "declarations")
        assert refused.value.expected


def test_events_that_are_counted_may_be_given_again() -> None:
    require_consistent((_VIEWS,), [_VIEW, Event("note", pk="NOTE#{url}", sk="{id}")])


_N = {"n": Count()}
_VISIT = Event("view", key=("url", "time", "clientId"))
_TEMPLATED = Event("view", pk="URL#{url}#{lang}", sk="T#{time}")
_OPEN = Event("view", pk="URL#{url}", sk="{time}")
_BESTS = Aggregate("players", Event("path", key=("player", "path")), by="player", measures=_N)


@pytest.mark.parametrize(
    ("made", "pk", "sk"),
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
def test_an_item_lies_next_to_its_source_if_that_names_the_group(made: Any, pk: str, sk: str | None) -> None:
    assert (made.pk, getattr(made, "sk", None)) == (pk, sk)


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
    event, found = draw(_events), list[Declarable]()
    for name in draw(st.lists(_some_names, unique=True, min_size=1, max_size=4)):
        fields = draw(_some_fields)
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
                template.render({name: data.draw(_key_texts) for name in template.fields})
                for template in (part._pk_template, part._sk_template)
            )
            for part in (one, two)
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
