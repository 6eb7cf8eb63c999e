"""One question, three doors: Python, HTTP and the terminal give the same numbers, and refuse in the same words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast
from urllib.parse import urlencode

import pytest

from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Average,
    Count,
    Counters,
    Distinct,
    Event,
    Extremes,
    Group,
    Histogram,
    InvalidArgumentError,
    Packed,
    Percentiles,
    Ranking,
    Sum,
    Window,
)
from dynamodb_counters._declarations import flatten
from dynamodb_counters._http.requests import ProblemError
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters._reads.group_reads import Extreme
from dynamodb_counters._reads.question import SHARES
from dynamodb_counters._reads.span_reads import Distribution, WindowCount
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from tests.unit.cli.in_process import run

NOW: Final = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

SALE = Event("sale", key=("shop", "time", "id"))
CLICK = Event("click", key=("ad", "time", "id"), packed=Packed("time"))
SHOPS = Aggregate(
    "shops",
    SALE,
    by="shop",
    sales=Count(),
    taken=Sum("price"),
    price=Average("price"),
    ranking=Ranking(measure="sales", leaderboard="SHOPS"),
)
DAYS = Aggregate("days", SALE, pk="SHOP#{shop}", sk="DAY#{time:day}", sales=Count())
SPREAD = Aggregate("spread", SALE, by="shop", prices=Histogram("price", bounds=[0, 10, 20]))
BUYERS = Distinct("buyers", SALE, by="shop", member="buyer")
HOURLY = Window("hourly", SALE, by="shop", time="time", retention=timedelta(days=30))
RECENT = ActiveMembers("recent", SALE, by="shop", member="buyer", time="time")
PRICES = Percentiles("prices", SALE, by="shop", attribute="price")
TIMED = Percentiles("timed", SALE, by="shop", attribute="price", error=0.1, time="time")
CLICKS = Aggregate("clicks", CLICK, by="ad", pages=True)
BEST = Extremes("best", SALE, by="shop", attribute="price", show="id")
DECLARED: Final = (SHOPS, DAYS, SPREAD, BUYERS, HOURLY, RECENT, PRICES, TIMED, BEST, CLICKS)
SERVED: Final = (*(part for part in flatten(DECLARED) if isinstance(part, Window) or not part._longest), SALE, CLICK)

Ask = Callable[[Counters], Any]


@pytest.fixture(scope="module")
def counters() -> Iterator[CountersInMemory]:
    with counters_in_memory(DECLARED, now=NOW - 3 * DAY) as counters:
        for number in range(60):
            counters.clock.advance(HOUR)
            values = {"shop": "abc"[number % 3], "time": counters.clock.now.isoformat(), "id": str(number)}
            counters.accept(SALE, {**values, "price": number % 23, "buyer": f"b{number % 7}"})
            counters.accept(CLICK, {"ad": values["shop"], "time": values["time"], "id": values["id"]})
        counters.clock.advance(NOW - counters.clock.now)
        yield counters


def numbers(answer: Any) -> Any:  # noqa: C901, PLR0911, PLR0912 - a row per kind
    """The numbers of an answer in Python, or of the document of another door, alike."""
    match answer:
        case Group():
            return numbers(answer.measures)
        case WindowCount():
            return answer.count
        case Distribution():
            return {"count": answer.count, **{share: numbers(answer.p(float(share))) for share in SHARES}}
        case Extreme():
            return [answer.value, answer.items]
        case datetime():
            return answer.isoformat()
        case {"measures": measures}:
            return numbers(measures)
        case {"percentiles": shares, "count": count}:
            return {"count": count, **{share: numbers(value) for share, value in shares.items()}}
        case {"groups": listed} | {"series": listed} | {"largest": listed} | {"smallest": listed} | {"events": listed}:
            return numbers(listed)
        case {"value": value, "items": items}:
            return [value, items]
        case {"count": count}:
            return count
        case Mapping():
            return {str(name): numbers(value) for name, value in answer.items()}
        case str() | None:
            return answer
        case Sequence() | Iterator():
            return [numbers(each) for each in answer]
    return float(answer)


def words(error: object) -> str:
    """What is expected; a door may name its own cure after a semicolon."""
    return str(error).strip().partition("expected ")[2].partition(";")[0]


def over_http(counters: Counters, path: str, query: Mapping[str, str]) -> Any:
    name, _, resource = path.partition("/")
    resources = CountResources(counters, SERVED)
    return resources.read(name, urlencode(query), resource=resource or "get")


_FLAGS: Final = {"start": "--since", "end": "--until"}
_OPTIONS: Final = {"last", "as_of", "start", "end", "step", "rolling", "tz", "anchor", "p", "order", "limit", "next"}


def at_a_terminal(counters: CountersInMemory, path: str, query: Mapping[str, str]) -> tuple[int, str, str]:
    name, _, resource = path.partition("/")
    arguments = ["events" if resource == "events" else "get", name, *(["--top"] if resource == "top" else [])]
    for option, value in query.items():
        flag = _FLAGS.get(option, f"--{option.replace('_', '-')}")
        arguments += [f"{flag}={value}"] if option in _OPTIONS else [f"{option}={value}"]
    clients = {"dynamodb": counters.client}
    done = run(
        *arguments,
        "--json",
        "--table",
        counters.table_name,
        client=counters.client,
        clients=clients,
        clock=counters.clock,
    )
    return done.code, done.out, done.err


SINCE, UNTIL = NOW - 26 * HOUR, NOW - 3 * HOUR
SPAN: Final = {"start": SINCE.isoformat(), "end": UNTIL.isoformat()}

RIGHT: Final[Sequence[tuple[str, Mapping[str, str], Ask]]] = (
    ("shops", {"shop": "a"}, lambda c: c.get(SHOPS, shop="a")),
    ("shops", {"shop": "b"}, lambda c: c.get(SHOPS, {"shop": "b"})),
    ("shops", {"shop": "none"}, lambda c: c.get(SHOPS, shop="none")),
    ("clicks", {}, lambda c: c.groups(CLICKS)),
    ("clicks", {"limit": "2"}, lambda c: [*c.groups(CLICKS)][:2]),
    ("shops/top", {}, lambda c: c.top(SHOPS)),
    ("shops/top", {"limit": "2"}, lambda c: c.top(SHOPS, count=2)),
    ("days", {"shop": "a"}, lambda c: c.groups(DAYS, shop="a")),
    ("days", {"shop": "a", "time:day": "2026-11-19"}, lambda c: c.get(DAYS, {"shop": "a", "time:day": "2026-11-19"})),
    ("days", {"shop": "none"}, lambda c: c.groups(DAYS, shop="none")),
    ("spread", {"shop": "c"}, lambda c: c.get(SPREAD, shop="c")),
    ("buyers", {"shop": "a"}, lambda c: c.get(BUYERS, shop="a")),
    ("clicks", {"ad": "b"}, lambda c: c.get(CLICKS, ad="b")),
    ("hourly", {"shop": "a"}, lambda c: c.window(HOURLY, shop="a").last(DAY)),
    ("hourly", {"shop": "a", "last": "6h"}, lambda c: c.window(HOURLY, shop="a").last(6 * HOUR)),
    (
        "hourly",
        {"shop": "a", "last": "6h", "as_of": UNTIL.isoformat()},
        lambda c: c.window(HOURLY, shop="a").last(6 * HOUR, as_of=UNTIL),
    ),
    ("hourly", {"shop": "b", **SPAN}, lambda c: c.window(HOURLY, shop="b").between(SINCE, UNTIL)),
    ("hourly", {"shop": "none"}, lambda c: c.window(HOURLY, shop="none").last(DAY)),
    (
        "hourly/series",
        {"shop": "a", "step": "1h", **SPAN},
        lambda c: c.window(HOURLY, shop="a").series(SINCE, UNTIL, step=HOUR),
    ),
    (
        "hourly/series",
        {"shop": "a", "step": "day", "tz": "Asia/Tokyo", **SPAN},
        lambda c: c.window(HOURLY, shop="a").series(SINCE, UNTIL, step="day", tz="Asia/Tokyo"),
    ),
    (
        "hourly/series",
        {"shop": "a", "step": "month", "anchor": "20", **SPAN},
        lambda c: c.window(HOURLY, shop="a").series(SINCE, UNTIL, step="month", anchor=20),
    ),
    ("recent", {"shop": "a", "last": "2d"}, lambda c: c.window(RECENT, shop="a").last(2 * DAY)),
    (
        "recent/series",
        {"shop": "a", "last": "2d", "rolling": "2d"},
        lambda c: c.window(RECENT, shop="a").rolling(NOW - DAY, NOW, 2 * DAY),
    ),
    ("prices", {"shop": "a"}, lambda c: c.get(PRICES, shop="a")),
    ("timed", {"shop": "a", "last": "12h"}, lambda c: c.window(TIMED, shop="a").last(12 * HOUR)),
    (
        "timed/series",
        {"shop": "a", "step": "6h", **SPAN},
        lambda c: c.window(TIMED, shop="a").series(SINCE, UNTIL, step=6 * HOUR),
    ),
    ("best", {"shop": "a", "order": "largest"}, lambda c: c.extremes(BEST, shop="a", order="largest", count=10)),
    (
        "best",
        {"shop": "a", "order": "smallest", "limit": "2"},
        lambda c: c.extremes(BEST, shop="a", order="smallest", count=2),
    ),
    ("spread", {"shop": "a"}, lambda c: c.get(SPREAD, shop="a")),
    ("clicks", {"ad": "none"}, lambda c: c.get(CLICKS, ad="none")),
    ("recent", {"shop": "b"}, lambda c: c.window(RECENT, shop="b").last(7 * DAY)),
    ("timed", {"shop": "b"}, lambda c: c.window(TIMED, shop="b").last(DAY)),
    ("sale/events", {"shop": "a"}, lambda c: c.events(SALE, shop="a")),
    ("click/events", SPAN, lambda c: c.events(CLICK, start=SINCE, end=UNTIL)),
)


@pytest.mark.parametrize(
    ("path", "query", "ask"), RIGHT, ids=[f"{path}?{urlencode(query)}" for path, query, _ in RIGHT]
)
def test_the_doors_give_the_same_numbers(
    path: str, query: Mapping[str, str], ask: Ask, counters: CountersInMemory
) -> None:
    document = json.loads(json.dumps(over_http(counters, path, query), default=float))
    code, out, err = at_a_terminal(counters, path, query)
    assert code == 0, err
    assert numbers(json.loads(out)) == numbers(document) == numbers(ask(counters))


EARLY: Final = datetime(2026, 1, 1, tzinfo=UTC)
WRONG: Final[Sequence[tuple[str, Mapping[str, str], Ask]]] = (
    ("shops", {"shp": "a"}, lambda c: c.get(SHOPS, shp="a")),
    ("shops", {"shop": "a", "city": "b"}, lambda c: c.get(SHOPS, shop="a", city="b")),
    ("days", {"time:day": "2026-11-19"}, lambda c: c.get(DAYS, {"time:day": "2026-11-19"})),
    ("days", {"shop": "a", "time:day": "monday"}, lambda c: c.get(DAYS, {"shop": "a", "time:day": "monday"})),
    ("shops/top", {"limit": "0"}, lambda c: c.top(SHOPS, count=0)),
    ("shops/top", {"limit": "1001"}, lambda c: c.top(SHOPS, count=1001)),
    ("shops/top", {"shop": "a"}, lambda c: c.top(SHOPS, shop="a")),
    ("hourly", {"last": "1h"}, lambda c: c.window(HOURLY).last(HOUR)),
    ("hourly", {"shop": "a", "last": "366d"}, lambda c: c.window(HOURLY, shop="a").last(366 * DAY)),
    ("hourly", {"shop": "a", "last": "90s"}, lambda c: c.window(HOURLY, shop="a").last(timedelta(seconds=90))),
    ("hourly", {"shop": "a", "start": EARLY.isoformat()}, lambda c: c.window(HOURLY, shop="a").between(EARLY, NOW)),
    (
        "hourly",
        {"shop": "a", "start": UNTIL.isoformat(), "end": SINCE.isoformat()},
        lambda c: c.window(HOURLY, shop="a").between(UNTIL, SINCE),
    ),
    (
        "hourly/series",
        {"shop": "a", "step": "90s", **SPAN},
        lambda c: c.window(HOURLY, shop="a").series(SINCE, UNTIL, step=timedelta(seconds=90)),
    ),
    (
        "hourly/series",
        {"shop": "a", "step": "1h", "tz": "Mars/Base", **SPAN},
        lambda c: c.window(HOURLY, shop="a").series(SINCE, UNTIL, step=HOUR, tz="Mars/Base"),
    ),
    (
        "hourly/series",
        {"shop": "a", "step": "month", "anchor": "32", **SPAN},
        lambda c: c.window(HOURLY, shop="a").series(SINCE, UNTIL, step="month", anchor=32),
    ),
    (
        "hourly/series",
        {"shop": "a", "step": "day", "anchor": "3", **SPAN},
        lambda c: c.window(HOURLY, shop="a").series(SINCE, UNTIL, step="day", anchor=3),
    ),
    ("recent", {"shop": "a", "last": "31d"}, lambda c: c.window(RECENT, shop="a").last(31 * DAY)),
    ("recent", {"shop": "a", "last": "90m"}, lambda c: c.window(RECENT, shop="a").last(timedelta(minutes=90))),
    ("prices", {}, lambda c: c.get(PRICES)),
    ("timed", {"shop": "a", "last": "90m"}, lambda c: c.window(TIMED, shop="a").last(timedelta(minutes=90))),
    ("best", {"shop": "a", "order": "first"}, lambda c: c.extremes(BEST, shop="a", order=cast("Any", "first"))),
    ("best", {"shop": "a", "limit": "0"}, lambda c: c.extremes(BEST, shop="a", order="largest", count=0)),
    ("timed", {"last": "2d"}, lambda c: c.window(TIMED).last(2 * DAY)),
    ("recent", {}, lambda c: c.window(RECENT).last(2 * DAY)),
    ("best", {"shop": "a", "limit": "1001"}, lambda c: c.extremes(BEST, shop="a", order="largest", count=1001)),
    ("sale/events", {}, lambda c: [*c.events(SALE)]),
    (
        "click/events",
        {"start": UNTIL.isoformat(), "end": SINCE.isoformat()},
        lambda c: [*c.events(CLICK, start=UNTIL, end=SINCE)],
    ),
)


@pytest.mark.parametrize(
    ("path", "query", "ask"), WRONG, ids=[f"{path}?{urlencode(query)[:60]}" for path, query, _ in WRONG]
)
def test_the_doors_refuse_in_the_same_words(
    path: str, query: Mapping[str, str], ask: Ask, counters: CountersInMemory
) -> None:
    with pytest.raises((InvalidArgumentError, ProblemError)) as served:
        over_http(counters, path, query)
    code, _, err = at_a_terminal(counters, path, query)
    with pytest.raises(InvalidArgumentError) as called:
        ask(counters)
    assert code == 2
    assert words(called.value) == words(served.value) == words(err)


def test_groups_with_keys_of_their_own_are_listed_for_the_price_of_a_scan(counters: CountersInMemory) -> None:
    """A stranger may not ask for one: over HTTP, the fields of the key are required."""
    code, _, err = at_a_terminal(counters, "shops", {})
    with pytest.raises(InvalidArgumentError) as called:
        counters.groups(SHOPS)
    assert (code, words(err)) == (2, words(called.value))
    listed = run("get", "shops", "--scan", "--json", "--table", counters.table_name, client=counters.client)
    assert numbers(json.loads(listed.out)) == numbers(counters.groups(SHOPS, scan=True))
    with pytest.raises(InvalidArgumentError, match="expected a value for each of shop"):
        over_http(counters, "shops", {})
