"""Reads and writes refuse a declaration of the wrong kind or one that is not counted, and wrong groups, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Attr,
    Counter,
    Counters,
    Declaration,
    Distinct,
    Event,
    Extremes,
    InvalidArgumentError,
    Items,
    Percentiles,
    Quota,
    Ranking,
    UncountedError,
    Window,
)
from simulation.counters_in_memory import counters_in_memory
from simulation.world import World
from tests.unit.writes.clients import ScriptedClient

VIEW: Final = Event("view", key=("url", "at", "id"))
VIEWS: Final = Aggregate("views", VIEW, by="url")
BY_ID: Final = Aggregate("by_id", VIEW, by=("url", "id"))
SHARDED: Final = Aggregate("sharded", VIEW, by="url", write_shards=2)
TOP: Final = Aggregate("top", VIEW, by=("url", "id"), ranking=Ranking(measure="top", leaderboard="TOP#{url}"))
VISITORS: Final = Distinct("visitors", VIEW, by="url", member="id")
RECENT: Final = Window("recent", VIEW, by="url", time="at")
ACTIVE: Final = ActiveMembers("active", VIEW, by="url", member="id", time="at")
SIZES: Final = Percentiles("sizes", VIEW, by="url", attribute="size")
ENDS: Final = Extremes("ends", VIEW, by="url", attribute="size")
STOCK: Final = Counter("stock", by="url")
CALLS: Final = Quota("calls", limit=5, per="day", by="url")
PATHS: Final = Items("paths")
COUNTED: Final[list[Declaration]] = [VIEWS, BY_ID, SHARDED, TOP, VISITORS, RECENT, ACTIVE, SIZES, ENDS, STOCK]

NOW: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY: Final = timedelta(days=1)
URL: Final = {"url": "/"}

Call = Callable[..., Any]


def _method(name: str) -> Call:
    def call(counters: Counters, of: Any, *group: Any, **fields: Any) -> Any:
        answer = getattr(counters, name)(of, *group, **fields)
        return [*answer] if isinstance(answer, Iterator) else answer

    return call


def _reader(name: str, *arguments: Any, **options: Any) -> Call:
    def call(counters: Counters, of: Any, *group: Any, **fields: Any) -> Any:
        return getattr(counters.window(of, *group, **fields), name)(*arguments, **options)

    return call


READS: Final[dict[str, tuple[Any, Call]]] = {
    "get": (VIEWS, _method("get")),
    "get of shards": (SHARDED, _method("get")),
    "get of a Distinct": (VISITORS, _method("get")),
    "get of Percentiles": (SIZES, _method("get")),
    "groups": (BY_ID, _method("groups")),
    "top": (TOP, _method("top")),
    "extremes": (ENDS, _method("extremes")),
    "explain": (VIEWS, _method("explain")),
    "last": (RECENT, _reader("last", DAY)),
    "calendar": (RECENT, _reader("calendar", "day")),
    "between": (RECENT, _reader("between", NOW - DAY, NOW)),
    "series": (RECENT, _reader("series", NOW - DAY, NOW, step="day")),
    "rolling": (ACTIVE, _reader("rolling", NOW - DAY, NOW)),
}
ALL: Final[dict[str, tuple[Any, Call]]] = {
    **READS,
    "events": (VIEW, _method("events")),
    "increment": (STOCK, _method("increment")),
    "reset": (STOCK, _method("reset")),
    "leases": (CALLS, lambda counters, of, *group, **fields: counters.leases(of, *group, **fields).take()),
}

TO_CALL: Final = {
    RECENT: "an Aggregate; for a Window, use window()",
    VISITORS: "an Aggregate; for a Distinct, use get(), or its `total`",
    VIEW: "an Aggregate; for an Event, declare an Aggregate over it, or use events()",
    PATHS: "an Aggregate; for Items, declare an Aggregate over them",
    "views": "an Aggregate; for a name, pass the declaration itself",
}
OF_AGGREGATES: Final[dict[str, Call]] = {
    **{name: _method(name) for name in ("get", "groups", "top")},
    "get_many": lambda counters, of, group: counters.get_many([(of, group)]),
}
OF_EVENTS: Final[dict[str, Call]] = {
    **{name: _method(name) for name in ("accept", "retract", "events")},
    "accept_many": lambda counters, of, group: counters.accept_many(of, [group]),
    "record_once": lambda counters, of, group: counters.record_once(of, group, []),
}


def _counters() -> Counters:
    client: Any = ScriptedClient()
    return Counters("table", client=client, clock=NOW.timestamp)


@pytest.mark.parametrize("name", ALL)
def test_keyword_arguments_and_a_mapping_name_the_same_group(name: str) -> None:
    of, call = ALL[name]
    answers = []
    for group, fields in (((), URL), ((URL,), {})):
        with counters_in_memory(COUNTED, now=NOW) as counters:
            views = [
                {"url": url, "id": user, "size": 1, "at": NOW.isoformat()} for url in ("/", "/b") for user in "123"
            ]
            counters.accept_many(VIEW, views).raise_for_rejected()
            counters.increment(STOCK, url="/", amount=5)
            answers.append(call(counters, of, *group, **fields))
    assert answers[0] == answers[1]
    assert answers[0]


@pytest.mark.parametrize("name", ALL)
def test_a_group_that_is_named_twice_or_by_no_mapping_is_refused_before_any_call(name: str) -> None:
    of, call = ALL[name]
    with pytest.raises(InvalidArgumentError, match=r"^invalid values=.*: expected keyword arguments or one mapping"):
        call(_counters(), of, URL, id="1")
    with pytest.raises(InvalidArgumentError, match=r"^invalid values='/': expected a mapping of fields to values"):
        call(_counters(), of, "/")


@pytest.mark.parametrize("name", [*READS, "increment", "reset"])
def test_an_unknown_field_is_refused_before_any_call(name: str) -> None:
    of, call = ALL[name]
    with pytest.raises(InvalidArgumentError) as refused:
        call(_counters(), of, {"url": "/", "cleint": "c1"})
    assert str(refused.value) == f"invalid cleint='c1': expected a field of {of.name!r}: url"


def test_fields_may_have_the_names_of_arguments() -> None:
    names, option = Counter("names", by=("self", "values", "counter")), Counter("option", by=("consistent", "at.x"))
    with counters_in_memory([names, option]) as counters:
        counters.increment(names, self="a", values="b", counter="c")
        counters.increment(option, {"consistent": "x", "at.x": "red"}, amount=4)
        assert counters.get(names, self="a", values="b", counter="c")["names"] == 1
        assert counters.get(option, {"consistent": "x", "at.x": "red"}, consistent=True)["option"] == 4


@pytest.mark.parametrize("name", READS)
def test_what_no_deployment_counts_or_counts_otherwise_is_refused(name: str) -> None:
    of, call = READS[name]
    refusal = rf"^invalid declaration='{of.name}(-members)?': expected one that the table's aggregator counts$"
    with counters_in_memory([STOCK]) as counters, pytest.raises(UncountedError, match=refusal):
        call(counters, of, URL)
    sources: list[Any] = [each for each in COUNTED if each is not STOCK]
    others = [replace(each, where=Attr("size").ge(5)) for each in sources]
    changed = pytest.raises(UncountedError, match=f"`counters backfill {of.name}(-members)?_v2`")
    with counters_in_memory(others) as counters, changed:
        call(counters, of, URL)


@pytest.mark.parametrize(
    ("call", "declared"),
    [(call, of) for call in OF_AGGREGATES for of in TO_CALL if of is not VISITORS or call == "top"],
    ids=str,
)
def test_values_that_are_no_aggregate_are_refused_with_the_right_call(call: str, declared: Any) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        OF_AGGREGATES[call](_counters(), declared, URL)
    assert (refused.value.argument, refused.value.expected) == ("aggregate", TO_CALL[declared])


@pytest.mark.parametrize(("declared", "advice"), [(VIEWS, "an Aggregate, use get()"), (VISITORS, "a Distinct, use")])
def test_values_that_are_no_window_are_refused_with_the_right_call(declared: Any, advice: str) -> None:
    refusal = f"invalid window='{declared.name}': expected a Window; for {advice}"
    with pytest.raises(InvalidArgumentError, match=refusal):
        _counters().window(declared, URL)


@pytest.mark.parametrize("call", OF_EVENTS)
def test_values_that_are_no_event_are_refused(call: str) -> None:
    with pytest.raises(InvalidArgumentError, match="invalid event='views': expected an Event; for an Aggregate"):
        OF_EVENTS[call](_counters(), VIEWS, URL)
    with pytest.raises(InvalidArgumentError, match=r"invalid event=5: expected an Event$"):
        OF_EVENTS[call](_counters(), 5, URL)


@pytest.mark.parametrize("name", ["increment", "reset"])
def test_only_a_counter_that_is_counted_is_changed_by_a_call(name: str) -> None:
    _, call = ALL[name]
    for declared in (VIEWS, RECENT, VISITORS, VIEW, PATHS, "views"):
        with pytest.raises(InvalidArgumentError, match="expected a Counter: what the stream counts is changed by its"):
            call(_counters(), declared, URL)
    bench = World(VIEWS)
    for counter in (Counter("views", by="url"), STOCK):
        with pytest.raises(UncountedError, match=counter.name):
            call(bench.counters, counter, URL)


def test_a_misspelt_measure_names_those_there_are() -> None:
    with counters_in_memory([STOCK]) as counters:
        counters.increment(STOCK, url="/")
        group = counters.get(STOCK, url="/")
    assert group["stock"] == group.measures["stock"] == 1
    with pytest.raises(InvalidArgumentError, match=r"^invalid measure='stok': expected one of 'stock'$"):
        _ = group["stok"]
