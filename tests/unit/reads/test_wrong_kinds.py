"""Reads and writes refuse a declaration of the wrong kind, and a field or a measure that it does not have, by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import (
    Aggregate,
    ChangedError,
    Count,
    Counter,
    Counters,
    Distinct,
    Event,
    Histogram,
    InvalidArgumentError,
    Items,
    Ranking,
    UncountedError,
    UnknownMeasureError,
    Window,
)
from simulation.workbench import Workbench
from tests.unit.fold.world import World
from tests.unit.writes.clients import ScriptedClient

VIEW = Event("view", pk="PAGE#{page}", sk="VIEW#{user}")
VIEWS = Aggregate("views", VIEW, pk="PAGE#{page}", sk="STATISTICS", measures={"views": Count()})
LAST_DAY = Window("last_day", VIEW, pk="PAGE#{page}", time="at")
VISITORS = Distinct("visitors", VIEW, pk="SITE", sk="VISITORS", member="user")
PATHS = Items("paths")

HOME = {"page": "home"}
DAY = timedelta(days=1)
NOW = datetime(2026, 11, 20, tzinfo=UTC)

TO_CALL = {
    "last_day": "an Aggregate; for a Window, use window()",
    "visitors": "an Aggregate; for a Distinct, use get(), or its `total`",
    "view": "an Aggregate; for an Event, declare an Aggregate over it, or use events()",
    "paths": "an Aggregate; for Items, declare an Aggregate over them",
    "'views'": "an Aggregate; for a name, pass the declaration itself",
}

TAKEN: dict[type, tuple[str, ...]] = {Distinct: ("get", "get_many", "groups")}

Call = Callable[[Counters, Any], object]
OF_AGGREGATES: dict[str, Call] = {
    "get": lambda counters, declared: counters.get(declared, HOME),
    "get_many": lambda counters, declared: counters.get_many([(declared, HOME)]),
    "groups": lambda counters, declared: next(counters.groups(declared, HOME)),
    "top": lambda counters, declared: counters.top(declared),
    "increment": lambda counters, declared: counters.increment(declared, HOME),
    "reset": lambda counters, declared: counters.reset(declared, HOME),
}
OF_WINDOWS: dict[str, Call] = {
    "window": lambda counters, declared: counters.window(declared, HOME).last(DAY),
    "calendar": lambda counters, declared: counters.window(declared, HOME).calendar("day"),
    "between": lambda counters, declared: counters.window(declared, HOME).between(NOW - DAY, NOW),
    "series": lambda counters, declared: counters.window(declared, HOME).series(NOW - DAY, NOW, step=DAY),
}
OF_EVENTS: dict[str, Call] = {
    "accept": lambda counters, declared: counters.accept(declared, HOME),
    "accept_many": lambda counters, declared: counters.accept_many(declared, [HOME]),
    "record_once": lambda counters, declared: counters.record_once(declared, HOME, []),
    "retract": lambda counters, declared: counters.retract(declared, HOME),
    "events": lambda counters, declared: next(counters.events(declared, HOME)),
}
_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="N", measures={"n": Count()})
_STOCK = Counter("stock", pk="URL#{url}", sk="STOCK")
_SHARDED = Aggregate("sharded", _VIEW, pk="S#{url}", sk="N", measures={"n": Count()}, write_shards=2)
_BY_ID = Aggregate("by_id", _VIEW, pk="URL#{url}", sk="BY#{id}", measures={"n": Count()})
_VISITORS = Distinct("visitors", _VIEW, member="id", pk="URL#{url}", sk="D")
_TOP = Aggregate(
    "top", _VIEW, pk="T#{url}", sk="N", measures={"n": Count()}, ranking=Ranking(measure="n", leaderboard="TOP")
)
_SIZES = Aggregate("sizes", _BY_ID, pk="SIZES", sk="N", measures={"bins": Histogram("n", exactly=[1])})
_RECENT = Window("recent", _VIEW, pk="URL#{url}", time="at")
_HOUR = timedelta(hours=1)
_NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)

_READS: dict[str, tuple[Callable[[Counters, Any], Any], str]] = {
    "get": (lambda counters, values: counters.get(_VIEWS, values), "of 'views': 'url'"),
    "get of a sharded one": (lambda counters, values: counters.get(_SHARDED, values), "of 'sharded': 'url'"),
    "get_many": (lambda counters, values: counters.get_many([(_VIEWS, values)]), "of 'views': 'url'"),
    "groups": (lambda counters, values: counters.groups(_BY_ID, values), "of 'by_id': 'url'"),
    "distinct": (lambda counters, values: counters.get(_VISITORS, values)["distinct"], "of 'visitors': 'url'"),
    "histogram": (lambda counters, values: counters.get(_SIZES, values)["bins"], "of 'sizes': none"),
    "top": (lambda counters, values: counters.top(_TOP, values), "of 'top': none"),
    "window": (lambda counters, values: counters.window(_RECENT, values).last(_HOUR), "of 'recent': 'url'"),
    "calendar": (lambda counters, values: counters.window(_RECENT, values).calendar("day"), "of 'recent': 'url'"),
    "between": (
        lambda counters, values: counters.window(_RECENT, values).between(_NOON - _HOUR, _NOON),
        "of 'recent': 'url'",
    ),
    "series": (
        lambda counters, values: counters.window(_RECENT, values).series(_NOON - _HOUR, _NOON, step=_HOUR),
        "of 'recent': 'url'",
    ),
    "increment": (lambda counters, values: counters.increment(_STOCK, values), "of 'stock': 'url'"),
    "reset": (lambda counters, values: counters.reset(_STOCK, values), "of 'stock': 'url'"),
}


def _counters() -> Counters:
    nothing: Any = object()
    return Counters("counts", client=nothing, clock=NOW.timestamp)


@pytest.mark.parametrize(
    ("call", "declared"),
    [
        (call, declared)
        for call in OF_AGGREGATES
        for declared in (LAST_DAY, VISITORS, VIEW, PATHS, "views")
        if call not in TAKEN.get(type(declared), ())
    ],
    ids=str,
)
def test_values_that_are_no_aggregate_are_refused_with_the_right_call(call: str, declared: Any) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        OF_AGGREGATES[call](_counters(), declared)

    if call in ("increment", "reset"):
        assert refused.value.expected.startswith("a Counter: what the stream counts")
        return
    assert refused.value.argument == "aggregate"
    shown = repr(declared) if isinstance(declared, str) else declared.name
    assert refused.value.expected == TO_CALL[shown]


@pytest.mark.parametrize("call", ["increment", "reset"])
def test_what_the_stream_counts_is_not_changed_by_a_call(call: str) -> None:
    bench = Workbench([VIEWS])
    bench.aggregator.handle({})
    expected = "^invalid counter='views': expected a Counter: what the stream counts is changed by its items alone"
    with pytest.raises(InvalidArgumentError, match=f"{expected}$"):
        OF_AGGREGATES[call](bench.counters, VIEWS)
    with pytest.raises(ChangedError, match="'views'"):
        OF_AGGREGATES[call](bench.counters, Counter("views", by="page"))
    with pytest.raises(UncountedError, match="'stock'"):
        OF_AGGREGATES[call](bench.counters, Counter("stock", by="page"))


@pytest.mark.parametrize("call", OF_WINDOWS)
@pytest.mark.parametrize(("declared", "advice"), [(VIEWS, "an Aggregate, use get()"), (VISITORS, "a Distinct, use")])
def test_values_that_are_no_window_are_refused_with_the_right_call(call: str, declared: Any, advice: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=f"invalid window='{declared.name}': expected a Window; for {advice}"
    ):
        OF_WINDOWS[call](_counters(), declared)


@pytest.mark.parametrize("call", OF_EVENTS)
def test_values_that_are_no_event_are_refused(call: str) -> None:
    with pytest.raises(InvalidArgumentError, match="invalid event='views': expected an Event; for an Aggregate"):
        OF_EVENTS[call](_counters(), VIEWS)
    with pytest.raises(InvalidArgumentError, match=r"invalid event=5: expected an Event$"):
        OF_EVENTS[call](_counters(), 5)


def test_a_misspelt_measure_names_those_there_are() -> None:
    world = World([VIEWS])
    world.put(VIEW, {**HOME, "user": "ann"})
    world.settle()
    group = world.counters.get(VIEWS, HOME)

    assert group["views"] == group.measures["views"] == 1
    for measures in (group, group.measures):
        with pytest.raises(UnknownMeasureError) as refused:
            _ = measures["view"]
        assert isinstance(refused.value, KeyError)
        assert str(refused.value) == "invalid measure='view': expected one of 'views'"


@pytest.mark.parametrize("name", _READS)
def test_an_unknown_field_is_refused_before_any_call(name: str) -> None:
    read, there = _READS[name]
    client: Any = ScriptedClient()
    counters = Counters("table", client=client)
    with pytest.raises(InvalidArgumentError) as refused:
        read(counters, {"cleint": "c1", "url": "/"} if "'url'" in there else {"cleint": "c1"})

    assert str(refused.value) == f"invalid values='cleint': expected no fields but those {there}"
    with pytest.raises(InvalidArgumentError, match=r"^invalid values=5: expected a mapping of fields to values"):
        read(counters, 5)
