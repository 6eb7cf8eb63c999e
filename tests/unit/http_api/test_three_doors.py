"""One question, three doors: Python, HTTP and the terminal give the same numbers, or refuse in the same words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counters_lambda.http_api.resources import CountResources
from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Counters,
    Distinct,
    Event,
    Extremes,
    Group,
    RangeCount,
    Rank,
    Ranks,
    Window,
)
from dynamodb_counters._declarations import Average, Count, Histogram, Packed, Percentiles, Ranking, Sum, flatten
from dynamodb_counters._declarations.composites import digit_of
from dynamodb_counters._reads.group_reads import Distribution, Extreme
from dynamodb_counters._reads.question import SHARES
from dynamodb_counters._reads.span_reads import WindowCount
from dynamodb_counters.errors import CountersError, InvalidArgumentError
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from simulation.night import scaled
from tests.unit.cli.in_process import run

NOW: Final = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

SALE = Event("sale", key=("shop", "time", "id"))
CLICK = Event("click", key=("ad", "time", "id"), packed=Packed("time"))
RANKING = Ranking(measure="sales", leaderboard="SHOPS")
SHOPS = Aggregate("shops", SALE, by="shop", sales=Count(), taken=Sum("price"), price=Average("price"), ranking=RANKING)
DAYS = Aggregate("days", SALE, pk="SHOP#{shop}", sk="DAY#{time:day}", sales=Count())
SPREAD = Aggregate("spread", SALE, by="shop", prices=Histogram("price", bounds=[0, 10, 20]))
BUYERS = Distinct("buyers", SALE, by="shop", member="buyer")
HOURLY = Window("hourly", SALE, by="shop", time="time", retention=timedelta(days=30))
RECENT = ActiveMembers("recent", SALE, by="shop", member="buyer", time="time")
PRICES = Percentiles("prices", SALE, by="shop", attribute="price")
TIMED = Percentiles("timed", SALE, by="shop", attribute="price", error=0.1, time="time")
CLICKS = Aggregate("clicks", CLICK, by="ad", pages=True)
BEST = Extremes("best", SALE, by="shop", attribute="price", show="id")
SPENT = Aggregate("spent", SALE, by=("shop", "buyer"), spent=Sum("price"))
BOARD = Ranks("board", SPENT, by="shop", score="spent", least=0, most=9999, places=1)
DECLARED: Final = (SHOPS, DAYS, SPREAD, BUYERS, HOURLY, RECENT, PRICES, TIMED, BEST, CLICKS, SPENT, BOARD)
_PARTS: Final = [part for part in flatten(DECLARED) if not digit_of(part)]
SERVED: Final = (*(part for part in _PARTS if isinstance(part, Window) or not part._longest), SALE, CLICK)
NAMED: Final[Mapping[str, Any]] = {declaration.name: declaration for declaration in (*DECLARED, SALE, CLICK)}

Query = dict[str, str]


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
    """Return the numbers of an answer in Python, or of the document of another door, alike."""
    match answer:
        case Group():
            return numbers(answer.measures)
        case WindowCount():
            return answer.count
        case Rank():
            return [answer.rank, answer.of, numbers(answer.score), answer.ties]
        case RangeCount():
            return [answer.count, answer.of]
        case {"ranks": _, "count": count, "of": members}:
            return [count, members]
        case {"ranks": _}:
            return [answer.get("rank"), answer["of"], numbers(answer.get("score")), answer["ties"]]
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
            return [numbers(item) for item in answer]
    return float(answer)


def words(error: object) -> str:
    """Return what is expected; a door may name its own cure after a semicolon."""
    return str(error).strip().partition("expected ")[2].partition(";")[0]


_LENGTHS: Final = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": HOUR, "d": DAY}
_PARSED: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("last", "rolling"), lambda text: int(text[:-1]) * _LENGTHS[text[-1]]),
    **dict.fromkeys(("as_of", "start", "end"), datetime.fromisoformat),
    **dict.fromkeys(("limit", "anchor", "rank"), int),
    **dict.fromkeys(("score", "low", "high"), Decimal),
    **dict.fromkeys(("tz", "order"), str),
    "step": lambda text: int(text[:-1]) * _LENGTHS[text[-1]] if text[0].isdigit() else text,
    "p": lambda text: text.split(","),
}


def in_python(counters: Counters, path: str, query: Query) -> Any:  # noqa: PLR0911 - a row per method
    """Ask by the method that there is."""
    name, _, resource = path.partition("/")
    declared = NAMED[name]
    values = {field: text for field, text in query.items() if field not in _PARSED}
    options: dict[str, Any] = {option: parse(query[option]) for option, parse in _PARSED.items() if option in query}
    shares, limit = options.pop("p", SHARES), options.pop("limit", None)
    if resource == "top":
        return counters.top(declared, values, count=10 if limit is None else limit)
    if isinstance(declared, Event):
        return [*islice(counters.events(declared, values, **options), limit)]
    if isinstance(declared, Ranks):
        read: Any = counters.at if "rank" in options else counters.between if "low" in options else counters.rank
        return read(declared, values, **options)
    if isinstance(declared, Extremes):
        return counters.extremes(declared, values, count=10 if limit is None else limit, **options)
    if name in ("hourly", "recent", "timed"):
        window: Any = counters.window(declared, values)
        if "rolling" in options:
            return window.rolling(options["start"], options["end"], options["rolling"])
        read = window.series if resource else window.between if "start" in options else window.last
        counts = read(options.pop("last"), **options) if "last" in options else read(**options)
        return [_shares(count, shares) for count in counts] if resource else _shares(counts, shares)
    if name in ("days", "clicks") and not {"time:day", "ad"} & {*values}:
        return [*islice(counters.groups(declared, values), limit)]
    return _shares(counters.get(declared, values), shares)


def _shares(answer: Any, shares: Sequence[str]) -> Any:
    if not isinstance(answer, Distribution):
        return answer
    return {"count": answer.count, "percentiles": {share: answer.p(float(share)) for share in shares}}


def over_http(counters: Counters, path: str, query: Query) -> Any:
    name, _, resource = path.partition("/")
    resources = CountResources(counters, SERVED)
    document = resources.read(name, urlencode(query), resource=resource or "get")
    return json.loads(json.dumps(document, default=float))


_FLAGS: Final = {"start": "--since", "end": "--until"}


def at_a_terminal(counters: CountersInMemory, path: str, query: Query) -> Any:
    name, _, resource = path.partition("/")
    arguments = ["events" if resource == "events" else "get", name, *(["--top"] if resource == "top" else [])]
    for option, value in query.items():
        flag = _FLAGS.get(option, f"--{option.replace('_', '-')}")
        arguments += [f"{flag}={value}"] if option in _PARSED else [f"{option}={value}"]
    outside: dict[str, Any] = {"client": counters.client, "clock": counters.clock}
    done = run(*arguments, "--json", "--table", counters.table_name, **outside)
    if done.code == 2:
        raise CountersError(done.err)
    assert done.code == 0, done.err
    return done.document


class Asked(NamedTuple):
    """A resource: values of the fields that it takes, options that are right, and what is wrong with any of them."""

    fields: Mapping[str, Sequence[str]]
    right: Sequence[Query] = ({},)
    wrong: Sequence[Query] = ()
    needs: str = ""
    """A field that may not be left out."""


SPAN: Final = {"start": (NOW - 26 * HOUR).isoformat(), "end": (NOW - 3 * HOUR).isoformat()}
BACK: Final = {"start": SPAN["end"], "end": SPAN["start"]}
EARLY: Final = {"start": "2026-01-01T00:00:00+00:00", "end": NOW.isoformat()}
LIMITS: Final = ({"limit": "0"}, {"limit": "1001"})
SHOP: Final = {"shop": ("a", "b", "c", "none")}
STEPS: Final = (
    *({"step": "1h", **SPAN}, {"step": "6h", **SPAN}, {"step": "day", "tz": "Asia/Tokyo", **SPAN}),
    *({"step": "month", "anchor": "20", **SPAN}, {"step": "week", **SPAN}),
)
WRONG_STEPS: Final = (
    *({"step": "90s", **SPAN}, {"step": "1h", "tz": "Mars/Base", **SPAN}),
    *({"step": "month", "anchor": "32", **SPAN}, {"step": "day", "anchor": "3", **SPAN}),
)
SPANS: Final = ({"last": "6h"}, {"last": "1d"}, {"last": "6h", "as_of": SPAN["end"]}, SPAN)
WRONG_SPANS: Final = ({"last": "366d"}, {"last": "90s"}, EARLY, BACK)
SHARED: Final = ({"p": "0.5"}, {"p": "0,0.9,1"})
ASKED: Final[Mapping[str, Asked]] = {
    "shops": Asked(SHOP),
    "shops/top": Asked({}, ({}, {"limit": "2"}), (*LIMITS, {"shop": "a"})),
    "days": Asked(SHOP, ({}, {"time:day": "2026-11-19"}, {"limit": "2"}), ({"time:day": "monday"},), "shop"),
    "spread": Asked(SHOP),
    "buyers": Asked(SHOP),
    "clicks": Asked({}, ({}, {"limit": "2"}, {"ad": "b"}, {"ad": "none"})),
    "hourly": Asked(SHOP, SPANS, WRONG_SPANS, "shop"),
    "hourly/series": Asked(SHOP, STEPS, WRONG_STEPS, "shop"),
    "recent": Asked(SHOP, ({"last": "2d"}, {"last": "7d"}, SPAN), ({"last": "31d"}, {"last": "90m"}), "shop"),
    "recent/series": Asked(SHOP, ({"step": "day", **SPAN}, {"rolling": "2d", **SPAN}), needs="shop"),
    "prices": Asked(SHOP, ({}, *SHARED), needs="shop"),
    "timed": Asked(
        SHOP, (*({**span, **share} for span in SPANS for share in SHARED), *SPANS), ({"last": "90m"},), "shop"
    ),
    "timed/series": Asked(SHOP, ({"step": "6h", **SPAN}, {"step": "6h", **SPAN, "p": "1"}), needs="shop"),
    "best": Asked(
        SHOP,
        ({"order": "largest"}, {"order": "smallest", "limit": "2"}),
        ({"order": "first"}, *({"order": "largest", **limit} for limit in LIMITS)),
    ),
    "board": Asked(
        SHOP,
        (
            *({"rank": "2"}, {"rank": "1", "order": "smallest"}, {"rank": "99"}, {"low": "10", "high": "70.5"}),
            *({"score": "40"}, {"score": "9999", "order": "smallest"}, {"buyer": "b2"}, {"buyer": "nobody"}),
        ),
        (
            *({}, {"rank": "0"}, {"rank": "1", "order": "first"}, {"rank": "1", "buyer": "b2"}),
            *({"low": "5", "high": "4"}, {"score": "-1"}, {"score": "1.25"}, {"score": "1", "buyer": "b2"}),
        ),
        "shop",
    ),
    "sale/events": Asked(SHOP, needs="shop"),
    "click/events": Asked({}, (SPAN, {**SPAN, "ad": "a"}), (BACK,)),
}


@st.composite
def queries(draw: st.DrawFn, path: str) -> Query:
    """Draw a query of a resource, with one mistake at most."""
    question = ASKED[path]
    fields = {name: draw(st.sampled_from(values)) for name, values in question.fields.items()}
    right = fields | draw(st.sampled_from(question.right))
    # Of a listing, a door names the fields that would do: not all name as many.
    is_listed = path in ("days", "clicks") and "time:day" not in right
    unknown = [] if is_listed or path.endswith("events") else [right | {"shp": "a"}]
    needs = question.needs and not is_listed
    missing = [{name: text for name, text in right.items() if name != question.needs}] if needs else []
    return draw(st.sampled_from([right, right, *(fields | options for options in question.wrong), *unknown, *missing]))


Door = Callable[[CountersInMemory, str, Query], Any]


def answered(door: Door, counters: CountersInMemory, path: str, query: Query) -> Any:
    """Return the numbers that a door gives, or the words in which it refuses."""
    try:
        return numbers(door(counters, path, query))
    except CountersError as refused:
        return words(refused)


@pytest.mark.parametrize("path", ASKED)
@settings(max_examples=scaled(12))
@given(st.data())
def test_the_doors_give_the_same_numbers_or_refuse_in_the_same_words(
    path: str, counters: CountersInMemory, data: st.DataObject
) -> None:
    query = data.draw(queries(path))
    expected = answered(in_python, counters, path, query)
    assert answered(over_http, counters, path, query) == expected
    assert answered(at_a_terminal, counters, path, query) == expected


def test_groups_with_keys_of_their_own_are_listed_for_the_price_of_a_scan(counters: CountersInMemory) -> None:
    """A stranger may not ask for one: over HTTP, the fields of the key are required."""
    with pytest.raises(CountersError) as refused:
        at_a_terminal(counters, "shops", {})
    with pytest.raises(InvalidArgumentError) as called:
        counters.groups(SHOPS)
    assert words(refused.value) == words(called.value)
    listed = run("get", "shops", "--scan", "--json", "--table", counters.table_name, client=counters.client)
    assert numbers(listed.document) == numbers(counters.groups(SHOPS, scan=True))
    with pytest.raises(InvalidArgumentError, match="expected a value for each of shop"):
        over_http(counters, "shops", {})
