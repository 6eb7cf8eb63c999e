"""Reads and writes refuse a declaration of the wrong kind or one that is not counted, and wrong groups, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Attr,
    Attribute,
    Count,
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
    Ranks,
    UncountedError,
    Window,
)
from dynamodb_counters._registry import NameStates
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
BOARD: Final = Ranks("board", VIEW, by="url", score="size", least=0, most=999)
BY_VIEWS: Final = Ranks("by_views", BY_ID, by="url", score="by_id", least=0, most=9)
STOCK: Final = Counter("stock", by="url")
CALLS: Final = Quota("calls", limit=5, per="day", by="url")
PATHS: Final = Items("paths")
COUNTED: Final[list[Declaration]] = [VIEWS, BY_ID, SHARDED, TOP, VISITORS, RECENT, ACTIVE, SIZES, ENDS, BOARD, STOCK]

NOW: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY: Final = timedelta(days=1)
URL: Final = {"url": "/"}

Call = Callable[..., Any]


def _method(name: str, **options: Any) -> Call:
    def call(counters: Counters, of: Any, *group: Any, **fields: Any) -> Any:
        answer = getattr(counters, name)(of, *group, **options, **fields)
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
    "rank": (BOARD, _method("rank", score=5)),
    "at": (BOARD, _method("at", rank=1)),
    "between": (BOARD, _method("between", low=0, high=5)),
    "explain": (VIEWS, _method("explain")),
    "last": (RECENT, _reader("last", DAY)),
    "calendar": (RECENT, _reader("calendar", "day")),
    "between of time": (RECENT, _reader("between", NOW - DAY, NOW)),
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
OF_EVENTS: Final[list[Call]] = [
    *map(_method, ("accept", "retract", "events")),
    lambda counters, of, group: counters.accept_many(of, [group]),
    lambda counters, of, group: counters.record_once(of, group, []),
]
OF_COUNTERS: Final = [_method("increment"), _method("reset")]
WRONG_KINDS: Final[list[tuple[Call, Any, str]]] = [
    *(
        (call, of, f"aggregate=.*: expected {re.escape(advice)}$")
        for name, call in OF_AGGREGATES.items()
        for of, advice in TO_CALL.items()
        if of is not VISITORS or name == "top"
    ),
    (_method("window"), VIEWS, r"window='views': expected a Window; for an Aggregate, use get\(\)"),
    (_method("rank"), VIEWS, r"ranks='views': expected Ranks; for an Aggregate, use get\(\)"),
    (_method("get"), BOARD, r"aggregate='board': expected an Aggregate; for Ranks, use rank\(\), at\(\) or between"),
    (_method("window"), VISITORS, "window='visitors': expected a Window; for a Distinct, use"),
    *((call, VIEWS, "event='views': expected an Event; for an Aggregate") for call in OF_EVENTS),
    *((call, 5, "event=5: expected an Event$") for call in OF_EVENTS),
    *(
        (call, of, "counter=.*: expected a Counter: what the stream counts is changed by its")
        for call in OF_COUNTERS
        for of in (VIEWS, RECENT, VISITORS, VIEW, PATHS, "views")
    ),
]


def _counters() -> Counters:
    client: Any = ScriptedClient()
    return Counters("table", client=client, clock=NOW.timestamp)


@pytest.mark.parametrize("name", ALL)
def test_keyword_arguments_and_a_mapping_name_the_same_group(name: str) -> None:
    of, call = ALL[name]
    answers = []
    for group, fields in (((), URL), ((URL,), {})):
        with counters_in_memory(COUNTED, now=NOW) as counters:
            values = {"size": 1, "at": NOW.isoformat()}
            views = [{"url": url, "id": user, **values} for url in ("/", "/b") for user in "123"]
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
    with pytest.raises(InvalidArgumentError, match=f"^invalid cleint='c1': expected a field of {of.name!r}: url$"):
        call(_counters(), of, {"url": "/", "cleint": "c1"})


SCORES: Final[list[Any]] = [
    0.5,
    True,
    "5",
    Decimal("5.5"),
    Decimal("NaN"),
    Decimal("Infinity"),
    -1,
    1000,
    10**5000,
    -(10**5000),
    Decimal(f"5.{'0' * 45}1"),
]
IN_RANGE: Final = "expected an int or Decimal from 0 to 999 with at most 0 decimal places"
ONE_OF: Final = "expected one of: fields of a member, score, rank, or low and high"


@pytest.mark.parametrize(
    ("name", "asked", "refusal"),
    [
        *(("rank", {"score": score}, f"score=.*: {IN_RANGE}") for score in SCORES),
        *(("between", {"low": score, "high": 9}, f"low=.*: {IN_RANGE}") for score in SCORES),
        *(("between", {"low": 0, "high": score}, f"high=.*: {IN_RANGE}") for score in SCORES),
        *(("at", {"rank": rank}, "rank=.*: expected an int from 1 to 999999999") for rank in (0, -1, True, 1.5, "1")),
        ("between", {"low": 5, "high": 4}, "high=4: expected 5, which is low, or more"),
        ("rank", {"score": 5, "order": "first"}, "order='first': expected one of 'largest', 'smallest'"),
        ("rank", {}, f"ranks='board': {ONE_OF}"),
        ("rank", {"values": {}, "score": 5}, "url=None: expected a value for each of url"),
        ("rank", {"values": {**URL, "id": "1"}}, "id='1': expected a field of 'board': url"),
        ("rank", {"of": BY_VIEWS, "values": {**URL, "id": "1"}, "score": 5}, f"ranks='by_views': {ONE_OF}"),
        ("rank", {"of": BY_VIEWS, "values": {"id": "1"}}, "url=None: expected a value for each of url"),
        ("rank", {"of": BY_VIEWS, "values": {**URL, "at": "x"}}, "at='x': expected a field of 'by_views': url, id"),
    ],
)
def test_a_question_about_ranks_that_has_no_answer_is_refused(name: str, asked: dict[str, Any], refusal: str) -> None:
    options = {"of": BOARD, "values": URL, **asked}
    of, values = options.pop("of"), options.pop("values")
    expected = pytest.raises(InvalidArgumentError, match=f"^invalid {refusal}")
    with counters_in_memory([*COUNTED, BY_VIEWS], now=NOW) as counters, expected:
        getattr(counters, name)(of, values, **options)


def test_ranks_are_complete_when_all_their_digits_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with counters_in_memory([*COUNTED, BY_VIEWS], now=NOW) as counters:
        assert counters.rank(BY_VIEWS, {**URL, "id": "1"}).complete
        with monkeypatch.context() as patch:
            patch.setattr(NameStates, "complete", lambda _self, declared: declared.name != "by_id")
            assert not counters.rank(BY_VIEWS, {**URL, "id": "1"}).complete
        answers = [READS[name][1] for name in ("rank", "at", "between")]
        assert [answer(counters, BOARD, URL).complete for answer in answers] == [True] * 3
        monkeypatch.setattr(NameStates, "complete", lambda _self, declared: declared.name != "board-1")
        assert [answer(counters, BOARD, URL).complete for answer in answers] == [False] * 3


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
    sources: list[Any] = [source for source in COUNTED if source is not STOCK]
    others = [replace(source, where=Attr("size").ge(5)) for source in sources]
    for declared, message in (([STOCK], refusal), (others, f"`counters backfill {of.name}(-members)?_v2`")):
        with counters_in_memory(declared) as counters, pytest.raises(UncountedError, match=message):
            call(counters, of, URL)


@pytest.mark.parametrize(("call", "of", "refusal"), WRONG_KINDS)
def test_declarations_of_another_kind_are_refused_with_the_right_call(call: Call, of: Any, refusal: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^invalid {refusal}"):
        call(_counters(), of, URL)


@pytest.mark.parametrize("call", OF_COUNTERS)
@pytest.mark.parametrize("counter", [Counter("views", by="url"), STOCK])
def test_only_a_counter_that_is_counted_is_changed_by_a_call(call: Call, counter: Counter) -> None:
    with pytest.raises(UncountedError, match=counter.name):
        call(World(VIEWS).counters, counter, URL)


def test_a_misspelt_measure_names_those_there_are() -> None:
    with counters_in_memory([STOCK]) as counters:
        counters.increment(STOCK, url="/")
        group = counters.get(STOCK, url="/")
    assert group["stock"] == group.measures["stock"] == 1
    with pytest.raises(InvalidArgumentError, match=r"^invalid measure='stok': expected one of 'stock'$"):
        _ = group["stok"]


# Texts that no group has, and what TTL may have deleted, are refused


STATUS = Attribute(int, minimum=100)
ATTRIBUTES = {"customer": str, "status": STATUS, "price": Decimal, "at": datetime, "due": date, "ms": int}
ATTRIBUTES |= {"size": Attribute(int, required=False)}
CALL = Event("call", key=("customer", "at"), attributes=ATTRIBUTES)
CALLED = {"customer": "c1", "status": 200, "price": 1, "at": "2026-11-20T05:00:00Z", "due": "2026-11-20", "ms": 1}
DAILY = Aggregate("daily", CALL, by=("customer", "at:day"))
TYPED = Aggregate("typed", CALL, by=("status", "price", "due", "at:hour"))
OF_DAILY = Aggregate("of_daily", DAILY, by=("customer", "at:day"), n=Count())
BANDS = Aggregate("bands", CALL, by=("size?free", "status:class", "ms:class?none"))
BAND = {"size?free": "free", "status:class": "5xx", "ms:class?none": "none"}
SEATS = Counter("seats", by=("show", "at:day"))
SITE = Aggregate("site", CALL, calls=Count())
HOURLY = Window("recent", CALL, by="customer", time="at")
C1 = {"customer": "c1"}


def _at(hour: int) -> datetime:
    return datetime(2026, 11, 20, hour, tzinfo=UTC)


def test_a_table_that_no_deployment_counts_is_incomplete() -> None:
    bench = World(SITE, HOURLY, founds=False)
    bench.counters.accept(CALL, CALLED)
    for calls, is_complete in ((0, False), (1, True)):
        group, hour = bench.counters.get(SITE), bench.counters.window(HOURLY, C1).last(timedelta(hours=1))
        assert (group["calls"], group.complete, hour.complete) == (calls, is_complete, is_complete)
        bench.deliver_all()
        bench.clock.advance(60)


@pytest.mark.parametrize(
    ("aggregate", "values", "refused"),
    [
        (DAILY, {**C1, "at:day": "01.01.2026"}, "invalid at:day='01.01.2026': expected a UTC day such as '2026-11-20'"),
        (DAILY, {**C1, "at:day": "2026-1"}, "invalid at:day='2026-1': expected a UTC day such as '2026-11-20'"),
        (DAILY, {**C1, "at:day": _at(5)}, "invalid at:day='2026-11-20T05:00:00Z': expected a UTC day such as"),
        (OF_DAILY, {**C1, "at:day": "20261120"}, "invalid at:day='20261120': expected a UTC day such as '2026-11-20'"),
        (SEATS, {"show": "a", "at:day": "2026-1"}, "invalid at:day='2026-1': expected a UTC day such as '2026-11-20'"),
        (BANDS, {**BAND, "status:class": 500}, "invalid status:class='500': expected a class from '1xx' to '9xx'"),
        (BANDS, {**BAND, "ms:class?none": "5"}, "invalid ms:class?none='5': expected a class from '1xx' to '9xx', or"),
        (BANDS, {**BAND, "size?free": "pro"}, "invalid size='pro': expected a whole number"),
        (TYPED, {"at:hour": "2026-11-20"}, "invalid at:hour='2026-11-20': expected a UTC hour such as '2026-11-20T00'"),
        (TYPED, {"status": "5.1"}, "invalid status='5.1': expected a whole number"),
        (TYPED, {"status": "ok"}, "invalid status='ok': expected a whole number"),
        (TYPED, {"price": "1,50"}, "invalid price='1,50': expected a number"),
        (TYPED, {"due": "2026-1"}, "invalid due='2026-1': expected an ISO 8601 date such as '2026-11-20'"),
    ],
)
def test_a_text_that_no_group_has_is_refused(aggregate: Aggregate, values: dict[str, Any], refused: str) -> None:
    with counters_in_memory([DAILY, TYPED, BANDS, OF_DAILY, SEATS]) as counters:
        for name in ("get", "increment", "reset") if aggregate is SEATS else ("get",):
            with pytest.raises(InvalidArgumentError, match=f"^{re.escape(refused)}"):
                getattr(counters, name)(aggregate, values)


def test_values_of_the_right_types_are_taken_in_every_form() -> None:
    with counters_in_memory([DAILY, TYPED]) as counters:
        for at in ("2026-11-20", date(2026, 11, 20)):
            assert counters.get(DAILY, {**C1, "at:day": at})["daily"] == 0
        # A group may be older than the limit that its status is below.
        counters.accept(replace(CALL, attributes=None), {**CALLED, "status": 5, "price": Decimal("1.50")})
        typed = {"status": 5.0, "price": Decimal("1.50"), "due": date(2026, 11, 20), "at:hour": "2026-11-20T05"}
        assert counters.get(TYPED, typed)["typed"] == 1
        for status, price, due in (("5", "1.5", "20261120"), ("5.0", "1.50", "2026-W47-5")):
            assert counters.get(TYPED, {**typed, "status": status, "price": price, "due": due})["typed"] == 1
    with counters_in_memory([BANDS]) as counters:
        counters.accept(CALL, {**CALLED, "status": 500, "ms": 100})
        assert counters.get(BANDS, {**BAND, "ms:class?none": "1xx"})["bands"] == 1


TYPED_VIEW: Final = replace(VIEW, attributes={"url": str, "at": datetime, "id": str, "ms": int})
_RETENTION: Final = timedelta(days=31)
_BY: Final[dict[str, Any]] = {"source": TYPED_VIEW, "by": ("at:day", "url"), "retention": _RETENTION}
_URL: Final[dict[str, Any]] = {**_BY, "by": "url", "time": "at"}
KEPT: Final = Aggregate("daily", **_BY)
PAGED: Final = Aggregate("paged", **{**_BY, "by": ("url", "at:day", "id")}, pages=True)
BEST: Final = Aggregate("top", **_BY, ranking=Ranking(measure="top", leaderboard="T#{at:day}"))
PEOPLE: Final = Distinct("people", **_BY, member="id", pages=True)
NAMES: Final = Distinct("names", **_BY, member="id")
SPEED: Final = Percentiles("speed", **_BY, attribute="ms")
SPEEDS: Final = Percentiles("speeds", **_URL, attribute="ms", precision=timedelta(days=1))
SLOWEST: Final = Extremes("slowest", **_BY, attribute="ms")
LATEST: Final = Window("recent", **_URL)
RANKED: Final = Ranks("ranked", **_BY, score="ms", least=0, most=999)
_ALL: Final = (KEPT, PAGED, BEST, PEOPLE, NAMES, SPEED, SPEEDS, SLOWEST, LATEST, RANKED)

START: Final = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
_DAY: Final = datetime(2026, 11, 20, tzinfo=UTC)
_END: Final = _DAY + timedelta(days=1)
_TIME: Final = {"at:day": "2026-11-20"}
_GROUP: Final = {**_TIME, "url": "/"}

_READS: Final[dict[str, Callable[[Counters], Any]]] = {
    "get": lambda counters: counters.get(KEPT, _GROUP)["daily"],
    "get_many": lambda counters: counters.get_many([(KEPT, _GROUP)])[0]["daily"],
    "get of a page": lambda counters: counters.get(PAGED, {**_GROUP, "id": "a"})["paged"],
    "get of a leaderboard": lambda counters: counters.get(BEST, _GROUP)["top"],
    "get of a Distinct": lambda counters: counters.get(PEOPLE, _GROUP)["distinct"],
    "groups of members": lambda counters: len([*counters.groups(NAMES._parts[0], _TIME)]),
    "groups": lambda counters: len([*counters.groups(KEPT, _TIME)]),
    "groups of pages": lambda counters: len([*counters.groups(PAGED, _TIME)]),
    "top": lambda counters: len(counters.top(BEST, _TIME)),
    "distribution": lambda counters: counters.get(SPEED, _GROUP).count,
    "distributions": lambda counters: counters.window(SPEEDS, url="/").between(_DAY, _END).count,
    "largest": lambda counters: len(counters.extremes(SLOWEST, _GROUP)),
    "smallest": lambda counters: len(counters.extremes(SLOWEST, _GROUP, order="smallest")),
    "rank": lambda counters: counters.rank(RANKED, _GROUP, score=5).ties,
    "at": lambda counters: counters.at(RANKED, _GROUP, rank=1).ties,
    "between scores": lambda counters: counters.between(RANKED, _GROUP, low=0, high=9).count,
    "explain": lambda counters: counters.explain(KEPT, _GROUP).numbers["daily"],
    "between": lambda counters: counters.window(LATEST, url="/").between(_DAY, _END).count,
    "series": lambda counters: counters.window(LATEST, url="/").series(_DAY, _END, step="day")[0].count,
}


@settings(max_examples=40, deadline=None)
@example(timedelta(days=31))
@example(timedelta(days=34, hours=12))
@example(timedelta(days=34, hours=13, minutes=30))
@example(timedelta(days=400))
@given(st.integers(0, 60 * 24 * 60).map(lambda minutes: timedelta(minutes=minutes)))
def test_deleted_counts_never_read_as_0(age: timedelta) -> None:
    with counters_in_memory(_ALL, now=START) as counters:
        counters.accept(TYPED_VIEW, {"url": "/", "at": START, "id": "a", "ms": 5})
        counters.clock.advance(age)
        answers = {name: _attempt(read, counters) for name, read in _READS.items()}

    is_over = START + age >= _END + _RETENTION
    assert {name: value for name, value in answers.items() if value not in (1, None)} == {}
    assert is_over or START + age - _RETENTION > _DAY or set(answers.values()) == {1}
    if START + age > _END + _RETENTION + timedelta(days=3):
        # Its members go, its number stays.
        assert {name for name, value in answers.items() if value is not None} == {"get of a Distinct"}


def _attempt(read: Callable[[Counters], Any], counters: Counters) -> int | None:
    """Return a number; None if the read says that nothing is kept, -1 if it says anything else."""
    try:
        return int(read(counters))
    except InvalidArgumentError as error:
        return None if "retains no more" in str(error) or "keeps no other" in str(error) else -1


def test_a_refusal_names_the_time_and_the_retention() -> None:
    with counters_in_memory(_ALL, now=START) as counters:
        counters.clock.advance(timedelta(days=40))
        allowed = "expected a day whose retention, 31 days, 0:00:00, is not over: 'daily' keeps no other"
        with pytest.raises(InvalidArgumentError, match=f"^invalid at:day='2026-11-20': {allowed}$"):
            counters.get(KEPT, _GROUP)
