"""Active members, levels, percentiles, extremes and ranks: right whatever is delivered, corrected or repaired."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal, localcontext
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import pytest

from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Average,
    Count,
    Counters,
    Distinct,
    Distribution,
    Event,
    Extremes,
    Histogram,
    Packed,
    Percentiles,
    Rank,
    Ranking,
    Ranks,
    Sum,
    TimeWeighted,
    Window,
)
from dynamodb_counters._declarations import flatten
from dynamodb_counters._items.conversions import format_number
from dynamodb_counters._items.keys import (
    LogBins,
    expected_text,
    ordered_text,
    value_of,
)
from dynamodb_counters._items.schema import PAGE_PREFIX, item_bytes, write_units
from dynamodb_counters._reads.question import ORDERS
from dynamodb_counters.errors import InvalidArgumentError
from simulation.counters_in_memory import CountersInMemory, Faults, counters_in_memory
from simulation.night import scaled
from simulation.pairs.housekeeping import narrow_pages
from simulation.world import World

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
NOW = START + 200 * DAY
VIEW = Event("view", key="id", version="revision")
PACKED = Event("click", key=("id", "sent"), packed=Packed("sent"))
ONCE = Event("once", key="id")
FAULTS = Faults(crash=0.3, redeliver=0.4, split=0.1)
LONGEST = 12
OF_EACH_SOURCE = pytest.mark.parametrize("source", [VIEW, PACKED], ids=["plain", "packed"])
SEEDS = pytest.mark.parametrize("seed", range(scaled(1)))

Events: TypeAlias = dict[str, dict[str, Any]]


def event_of(key: str, at: datetime = START, **values: Any) -> dict[str, Any]:
    return {"id": key, "sent": NOW.isoformat(), "time": at.isoformat(), "client": "c", "revision": 1, **values}


def churn(
    counters: CountersInMemory,
    source: Event,
    rng: random.Random,
    draw: Callable[[str], dict[str, Any]],
    choose: Callable[[Events], Collection[str]] = lambda current: sorted(current)[:: 1 + len(current) // 6],
) -> list[dict[str, Any]]:
    """Accept events in batches, after each of which some are corrected or taken back; return those that are left."""
    current: Events = {}
    for batch in range(5):
        events = [draw(f"e{batch}-{number:03d}") for number in range(rng.choice((1, 20, 60)))]
        counters.accept_many(source, events).raise_for_rejected()
        current |= {event["id"]: event for event in events}
        for key in choose(current):
            if source is VIEW and rng.random() < 0.5:
                current[key] = {**draw(key), "revision": current[key]["revision"] + 1}
                counters.accept(source, current[key])
            else:
                counters.retract(source, current.pop(key))
    return [*current.values()]


def _pages(counters: CountersInMemory, name: str) -> list[dict[str, Any]]:
    return [item for item in counters._tables[0].items() if item["sk"]["S"].startswith(f"{PAGE_PREFIX}{name}#")]


def _users(source: Event = VIEW, **changes: Any) -> ActiveMembers:
    arguments: dict[str, Any] = {"by": "url", "member": "client", "time": "time", "longest": LONGEST * DAY, **changes}
    return ActiveMembers("users", source, **arguments)


def _day(event: dict[str, Any]) -> int:
    return (datetime.fromisoformat(event["time"]) - START).days


def _active(events: Iterable[dict[str, Any]], first: int, last: int) -> int:
    return len({event["client"] for event in events if first <= _day(event) <= last})


def _gaps(counters: CountersInMemory, users: ActiveMembers, day: datetime) -> dict[int, int]:
    """Return the members that are active on a day, by the days since they were active before."""
    groups = counters.groups(users._parts[-1], {"url": "a", f"{users.time}:day": f"{day:%Y-%m-%d}"})
    return {int(group.values["gap"]): group["active"] for group in groups if group["active"]}


@OF_EACH_SOURCE
@SEEDS
def test_any_span_has_as_many_members_as_are_active_in_it(seed: int, source: Event) -> None:
    # Stretches of 360 days begin with day 20,520 since 1970, which is 2026-03-08.
    rng, days, users = random.Random(seed), 100, _users(source)

    def draw(key: str) -> dict[str, Any]:
        moment = START + timedelta(days=rng.randrange(days), seconds=rng.randrange(86_400))
        return event_of(key, moment, url=rng.choice("ab"), client=f"c{rng.randrange(8)}")

    with counters_in_memory([users], now=NOW, seed=seed, faults=FAULTS) as counters:
        events = churn(counters, source, rng, draw)
        for url in "ab":
            own, reader = [event for event in events if event["url"] == url], counters.window(users, url=url)
            for last in range(days):
                for length in (1, 2, 5, LONGEST):
                    first = last - length + 1
                    actual = reader.between(START + first * DAY, START + (last + 1) * DAY).count
                    assert actual == _active(own, first, last), (first, last)
            rolling = reader.rolling(START, START + days * DAY)
            assert [span.count for span in rolling] == [_active(own, last - 11, last) for last in range(days)]


def test_gaps_divide_the_members_of_each_day() -> None:
    with counters_in_memory([users := _users()], now=NOW) as counters:
        for member, days in {"a": (0, 1, 5, 30), "b": (1, 2, 14), "c": (13, 25)}.items():
            for day in days:
                counters.accept(VIEW, event_of(f"{member}{day}", START + day * DAY, url="a", client=member))
        actual = {day: _gaps(counters, users, START + day * DAY) for day in range(31)}
    # b on day 14, after 12 days; c on day 25, after 12; a on day 30, after 25.
    assert {day: gaps for day, gaps in actual.items() if gaps} == {
        **{day: {LONGEST: 1} for day in (0, 13, 14, 25, 30)},
        1: {1: 1, LONGEST: 1},
        2: {1: 1},
        5: {4: 1},
    }


@pytest.mark.parametrize(
    ("unit", "length"), [(MINUTE, 186), (timedelta(hours=1), 24), (DAY, 1)], ids=["minute", "hour", "day"]
)
def test_members_are_counted_to_any_precision(unit: timedelta, length: int) -> None:
    users = _users(precision=unit, longest=length * unit)
    rng, units = random.Random(1), sorted(random.Random(2).sample(range(800), 60))
    clients = [f"c{rng.randrange(8)}" for _ in units]
    with counters_in_memory([users], now=START + 900 * unit) as counters:
        for n, at in enumerate(units):
            counters.accept(VIEW, event_of(f"{n}", START + at * unit, url="a", client=clients[n]))
        reader = counters.window(users, url="a")
        for last in range(0, 800, 7):
            first = last - length + 1
            span = {client for client, at in zip(clients, units, strict=True) if first <= at <= last}
            assert reader.between(START + first * unit, START + (last + 1) * unit).count == len(span)
        with pytest.raises(InvalidArgumentError, match=r"at most .*, the longest of 'users'"):
            reader.last((length + 1) * unit)


def test_a_member_of_whom_a_chunk_has_a_whole_stretch_counts() -> None:
    users = _users(PACKED, by=())
    with counters_in_memory([users], now=NOW) as counters:
        counters.accept_many(PACKED, [event_of(f"{n}", START + n * DAY) for n in range(1000)]).raise_for_rejected()
        rolling = counters.window(users).rolling(START, START + 1000 * DAY)
    assert {span.count for span in rolling} == {1}


@pytest.mark.night
def test_a_page_of_150_active_units_takes_one_write_unit() -> None:
    events = [event_of(f"{day}", START + day * DAY, url="a") for day in range(66, 66 + 150)]
    with counters_in_memory([_users(longest=30 * DAY)], now=START + 400 * DAY) as counters:
        counters.accept_many(VIEW, events).raise_for_rejected()
        [page] = _pages(counters, "users-members")
    assert write_units(item_bytes(page)) == 1


STRETCH = datetime(2026, 3, 8, tzinfo=UTC)
"""Where one begins: 57 of them, each 360 days long, are 20,520 days since 1970."""


@pytest.mark.parametrize("gap", [1, LONGEST - 1, LONGEST, LONGEST + 1])
def test_a_stretch_looks_back_for_less_than_the_longest_span(gap: int) -> None:
    with counters_in_memory([users := _users()], now=NOW) as counters:
        for at in (STRETCH - gap * DAY, STRETCH):
            counters.accept(VIEW, event_of(at.isoformat(), at, url="a"))
        gaps = _gaps(counters, users, STRETCH)
        sizes = [sum(name.startswith("=") for name in page) for page in _pages(counters, "users-members")]
    assert gaps == {min(gap, LONGEST): 1}
    assert sorted(sizes) == [1, 2 if gap < LONGEST else 1]


def test_a_member_that_is_active_on_many_days_keeps_one_page() -> None:
    with narrow_pages(2), counters_in_memory([users := _users()], now=NOW) as counters:
        for at in (STRETCH + number * DAY for number in range(100)):
            counters.accept(VIEW, event_of(at.isoformat(), at, url="a"))
        assert len(_pages(counters, "users-members")) == 1
        gaps = [_gaps(counters, users, STRETCH + number * DAY) for number in range(1, 100)]
    assert gaps == [{1: 1}] * 99


def _level(events: Iterable[dict[str, Any]], at: datetime) -> Decimal:
    return Decimal(sum(event["seats"] for event in events if datetime.fromisoformat(event["time"]) < at))


def _integral(events: list[dict[str, Any]], start: datetime, end: datetime) -> Decimal:
    """Return the area below the level, step by step."""
    inside = sorted(moment for event in events if start < (moment := datetime.fromisoformat(event["time"])) < end)
    steps = pairwise([start, *inside, end])
    return sum((_level(events, last) * ((last - first) // timedelta(seconds=1)) for first, last in steps), Decimal(0))


@OF_EACH_SOURCE
@SEEDS
def test_a_level_and_its_integral_are_those_of_its_changes(seed: int, source: Event) -> None:
    rng, days = random.Random(seed), 90
    seats = Window("seats", source, by="team", time="time", measure=TimeWeighted("seats"))

    def draw(key: str) -> dict[str, Any]:
        change = rng.choice([1, -1, 5, Decimal("0.25"), Decimal("-12.5")])
        return event_of(
            key, START + timedelta(seconds=rng.randrange(days * 86_400)), team=rng.choice("ab"), seats=change
        )

    with counters_in_memory([seats], now=NOW, seed=seed, faults=FAULTS) as counters:
        events = churn(counters, source, rng, draw)
        for _ in range(60):
            team = rng.choice("ab")
            own = [event for event in events if event["team"] == team]
            start, end = (START + at * MINUTE for at in sorted(rng.sample(range(days * 1440), 2)))
            integral = counters.window(seats, team=team).integral(start, end)
            assert (integral.opening, integral.closing) == (_level(own, start), _level(own, end))
            assert integral.value == _integral(own, start, end)


def test_a_count_has_no_level() -> None:
    jobs = Window("jobs", VIEW, time="time", measure=Count())
    expected = pytest.raises(InvalidArgumentError, match="expected one whose measure is TimeWeighted")
    with counters_in_memory([jobs]) as counters, expected:
        counters.window(jobs).integral(START, START + DAY)


SHARES = (0, 0.01, 0.5, 0.9, 0.99, 0.999, 1)
ERRORS = ("0.001", "0.01", "0.05", "0.5")


def _values(rng: random.Random, count: int) -> list[Decimal]:
    kinds: list[Callable[[], Decimal]] = [
        lambda: Decimal(repr(round(rng.lognormvariate(5, 2), 3))),
        lambda: Decimal(rng.randrange(-1_000_000, 1_000_000)),
        lambda: rng.choice([Decimal(0), Decimal("1E-130"), Decimal("9.9E125")]),
        lambda: Decimal(10) ** rng.randrange(-60, 60),
    ]
    return [rng.choice(kinds)() for _ in range(count)]


def _is_within(actual: Decimal | None, expected: Decimal, error: str) -> bool:
    return actual is not None and abs(actual - expected) <= abs(expected) * Decimal(error)


@pytest.mark.parametrize("error", ERRORS)
def test_no_value_differs_from_its_bin_by_more_than_the_error(error: str) -> None:
    bins = LogBins(Decimal(error))
    for value in _values(random.Random(1), scaled(600)):
        name = bins.name_of(value)
        assert expected_text("ms:log0.01", name) is None
        assert _is_within(bins.value_of(name), value, error), value


def test_a_bin_has_a_name_and_a_value_with_as_many_digits_as_the_error_leaves() -> None:
    bins = LogBins(Decimal("0.01"))
    assert (bins.name_of(Decimal(250)), bins.value_of("277"), bins.name_of(-3)) == ("277", Decimal("250.787"), "n55")


@pytest.mark.parametrize("error", ["0.001", "0.01", "0.5"])
def test_the_bounds_of_bins_belong_to_the_lower_one(error: str) -> None:
    bins = LogBins(Decimal(error))
    for index in (-200, -1, 0, 1, 2, 200):
        bound = bins._bound(index)
        assert bins.name_of(bound) == str(index)
        assert bins.name_of(bound * (1 + Decimal("1E-20"))) == str(index + 1)


def _check_percentiles(values: Sequence[Decimal], error: str) -> None:
    declared = Percentiles("latency", PACKED, attribute="ms", error=Decimal(error))
    with counters_in_memory([declared], now=NOW) as counters:
        counters.accept_many(PACKED, [event_of(f"{n}", ms=ms) for n, ms in enumerate(values)]).raise_for_rejected()
        group = counters.get(declared)
    assert group.count == len(values)
    for share in SHARES:
        expected = sorted(values)[max(1, math.ceil(Decimal(str(share)) * len(values))) - 1]
        assert _is_within(group.p(share), expected, error)


def test_a_chunk_with_more_bins_than_an_update_takes_is_counted() -> None:
    _check_percentiles([Decimal(repr(round(1.004**number, 6))) for number in range(1500)], "0.001")


@pytest.mark.parametrize("share", [-0.1, 1.1, True, "0.5"])
def test_a_share_that_is_none_is_refused(share: Any) -> None:
    assert Distribution({}).p(0.5) is None
    with pytest.raises(InvalidArgumentError, match="a number from 0 to 1"):
        Distribution({}).p(share)


def test_a_unit_whose_page_has_split_is_read_whole() -> None:
    latency = Percentiles("latency", PACKED, attribute="ms", error=0.001, time="time", precision=DAY)
    values = [Decimal(repr(round(1.004**number, 6))) for number in range(200)]
    events = [event_of(f"{n}", STRETCH + n % 2 * DAY, ms=ms) for n, ms in enumerate(values)]
    with narrow_pages(2), counters_in_memory([latency], now=NOW) as counters:
        counters.accept_many(PACKED, events).raise_for_rejected()
        spans = counters.window(latency).series(STRETCH, STRETCH + 2 * DAY, step=DAY)
        assert len(_pages(counters, "latency")) > 2 * 16
    bins = LogBins(Decimal("0.001"))
    for day, span in enumerate(spans):
        assert list(span.bins) == sorted({bins.value_of(bins.name_of(ms)) for ms in values[day::2]})
        assert span.count == 100


def test_texts_are_in_the_order_of_their_numbers_and_times() -> None:
    rng, numbers = random.Random(1), [Decimal(text) for text in ("0", "1", "1.5", "10", "100", "9.9E125", "1E-130")]
    while len(numbers) < 2000:
        number = Decimal(rng.randrange(1, 10 ** rng.randrange(1, 38))).scaleb(rng.randrange(-130, 80))
        numbers += [number, number.copy_negate()] if -130 <= number.adjusted() <= 125 else []
    with localcontext(Context(prec=300)):
        ordered = sorted((ordered_text({"N": format_number(number)}), number) for number in numbers)
        assert [number for _, number in ordered] == sorted(numbers)
        assert all(expected_text("ms:order", text) is None and value_of(text) == number for text, number in ordered)
    times = ["0001-01-01T00:00:01Z", "2026-11-20T10:30:00+02:00", "2026-11-20T08:30:00.000001Z", "9999-12-31T00:00:00Z"]
    texts = [ordered_text({"S": text}) for text in times]
    assert texts == sorted(texts)
    assert [value_of(text) for text in texts] == [datetime.fromisoformat(text) for text in times]


@OF_EACH_SOURCE
@SEEDS
def test_extremes_are_those_of_the_events_there_are(seed: int, source: Event) -> None:
    rng = random.Random(seed)
    slowest = Extremes("slowest", source, by="route", attribute="ms", show="id")
    latest = Extremes("latest", source, by="route", attribute="time", show=("id", "ms"))
    sizes = Extremes("sizes", source, attribute="bytes")

    def draw(key: str) -> dict[str, Any]:
        more = {"route": rng.choice("ab"), "ms": rng.randrange(-20, 20), "bytes": rng.choice((3, 7))}
        return event_of(key, START + timedelta(seconds=rng.randrange(100)), **more)

    def choose(current: Events) -> list[str]:
        """Those at the ends go first."""
        by_ms = sorted(current, key=lambda key: current[key]["ms"])
        return sorted({*by_ms[:8], *by_ms[-8:]})

    with counters_in_memory([slowest, latest, sizes], now=NOW, seed=seed, faults=FAULTS) as counters:
        events = churn(counters, source, rng, draw, choose)
        for route in "ab":
            own = [event for event in events if event["route"] == route]
            ordered: list[Any] = sorted((event["ms"], event["id"]) for event in own)
            extremes = counters.extremes(slowest, route=route, count=5)
            assert [(extreme.value, extreme.shown["id"]) for extreme in extremes] == ordered[::-1][:5]
            extremes = counters.extremes(slowest, route=route, count=500, order="smallest")
            assert [(extreme.value, extreme.shown["id"]) for extreme in extremes] == ordered
            by_time = sorted((datetime.fromisoformat(event["time"]), event["id"], str(event["ms"])) for event in own)
            extremes = counters.extremes(latest, route=route)
            assert [(extreme.value, extreme.shown["id"], extreme.shown["ms"]) for extreme in extremes] == by_time[-1:]
        # Equal values are one with the number of their items.
        largest = max(event["bytes"] for event in events)
        expected: list[Any] = [(largest, sum(event["bytes"] == largest for event in events), {})]
        assert [(extreme.value, extreme.items, extreme.shown) for extreme in counters.extremes(sizes)] == expected


def numbers_of(rank: Rank) -> tuple[Any, ...]:
    assert rank.complete
    return rank.rank, rank.of, rank.score, rank.ties


SEEN = (
    Percentiles("sizes", ONCE, by="url", attribute="bytes"),
    Percentiles("hourly", ONCE, by="url", attribute="bytes", time="at"),
    ActiveMembers("users", ONCE, by="url", member="client", time="at", longest=timedelta(days=186)),
    Window("level", ONCE, by="url", time="at", measure=TimeWeighted("bytes"), future_tolerance=None),
    Extremes("latest", ONCE, by="url", attribute="at", show="client"),
    POINTS := Aggregate("points", ONCE, by=("url", "client"), points=Sum("bytes")),
    Ranks("board", POINTS, by="url", score="points", least=0, most=9999),
    Ranks("ranks", ONCE, by="url", score="bytes", least=0, most=100),
)
FRIDAY = datetime(2026, 11, 20, tzinfo=UTC)


def _read(world: World, url: str) -> list[Any]:
    sizes, hourly, users, level, latest, _, *ranks = SEEN
    counters, end = world.counters, FRIDAY + timedelta(days=60)
    return [
        counters.get(sizes, url=url).bins,
        counters.window(hourly, url=url).between(FRIDAY, end).bins,
        [span.count for span in counters.window(users, url=url).rolling(FRIDAY, end, timedelta(days=30))],
        counters.window(level, url=url).integral(FRIDAY, end).value,
        [extreme.value for extreme in counters.extremes(latest, url=url, count=100)],
        [numbers_of(counters.at(board, url=url, rank=number)) for board in ranks for number in range(1, 31)],
        [counters.rank(ranks[0], url=url, client=f"c{number}").score for number in range(5)],
    ]


@pytest.mark.parametrize("name", [part.name for part in flatten(SEEN)])
def test_numbers_that_a_measure_lacks_are_found_and_repaired(name: str) -> None:
    world = World(*SEEN)
    for number in range(60):
        at = (FRIDAY + timedelta(hours=7 * number)).isoformat()
        more = {"url": "ab"[number % 2], "client": f"c{number % 5}", "bytes": number * 37 % 100}
        world.accept(ONCE, {"id": f"{number}", "at": at, **more})
    world.settle()
    world.settle()
    before = [_read(world, url) for url in "ab"]
    # Pages of scores that are gone count 0.
    items = [item for item in world.items(name) if {item[key]["N"] for key in item if key[0] == "="} != {"0"}]
    world.delete((min if name == "users-members" else max)(items, key=lambda item: str(item["sk"]["S"])))
    world.settle()
    assert [_read(world, url) for url in "ab"] != before
    for _ in range(3):
        world.verify().repair()
        world.settle()
    assert [_read(world, url) for url in "ab"] == before
    assert world.missing() == []


# The table of docs/declarations.md: a cell that schedules do not prove is derived by doing it

BEGIN: Final = datetime(2026, 11, 15, tzinfo=UTC)
END: Final = BEGIN + 5 * DAY
SALE: Final = Event("sale", key=("buyer", "id"), version="revision", retention=20 * DAY)


def _sold(number: int, day: int, amount: int, buyer: str = "ann", revision: int = 1) -> dict[str, Any]:
    at = (BEGIN + day * DAY).isoformat()
    return {"id": f"{number}", "buyer": buyer, "shop": "a", "at": at, "amount": amount, "revision": revision}


SALES: Final = [_sold(1, 0, 3), _sold(2, 1, 90), _sold(3, 2, 7, "bob"), _sold(4, 4, 3), _sold(5, 4, 40, "cem")]


class Measured(NamedTuple):
    """A measure: how it is declared, and how it is read."""

    declare: Callable[..., Any]
    read: Callable[[Counters, Any], Any]

    def of(self, events: list[dict[str, Any]], **options: Any) -> Any:
        """Return the result of a table that has seen these events alone."""
        declared = self.declare(**options)
        with counters_in_memory([declared], now=END) as counters:
            counters.accept_many(SALE, events)
            return self.read(counters, declared)


def _of(kind: Any, read: Callable[[Counters, Any], Any], **arguments: Any) -> Measured:
    return Measured(partial(kind, "sales", SALE, **{"by": "shop", **arguments}), read)


def _window(measure: Any, read: Callable[[Any], Any]) -> Measured:
    arguments: dict[str, Any] = {"time": "at", "measure": measure, "longest": 5 * DAY}
    return _of(Window, lambda counters, declared: read(counters.window(declared, shop="a")), **arguments)


def _measures(counters: Counters, declared: Aggregate) -> Any:
    return dict(counters.get(declared, shop="a").measures)


def _ranked(counters: Counters, declared: Aggregate) -> Any:
    return _measures(counters, declared), [(group.values, group["n"]) for group in counters.top(declared) if group["n"]]


def _extremes(counters: Counters, declared: Extremes) -> Any:
    largest, smallest = (counters.extremes(declared, shop="a", count=9, order=order) for order in ORDERS)
    return [[(extreme.value, extreme.items, extreme.shown) for extreme in extremes] for extremes in (largest, smallest)]


def _rolling(counters: Counters, declared: ActiveMembers) -> Any:
    users = counters.window(declared, shop="a")
    return [[span.count for span in users.rolling(BEGIN, END, length * DAY)] for length in (1, 2, 3)]


def _boards(counters: Counters, declared: Ranks) -> Any:
    return [numbers_of(counters.at(declared, shop="a", rank=number)) for number in range(1, 7)]


def _level_of(window: Any) -> Any:
    integral = window.integral(BEGIN, END)
    return integral.value, integral.closing


MEASURES: Final = {
    "Count": _of(Aggregate, _measures, n=Count()),
    "Sum": _of(Aggregate, _measures, paid=Sum("amount")),
    "Average": _of(Aggregate, _measures, paid=Average("amount")),
    "Histogram": _of(Aggregate, _measures, paid=Histogram("amount", bounds=[0, 10, 50])),
    "Ranking": _of(Aggregate, _ranked, n=Count(), ranking=Ranking("n", leaderboard="SHOPS")),
    "Distinct": _of(Distinct, lambda counters, part: counters.get(part.total, shop="a")["distinct"], member="buyer"),
    "Window": _window(Sum("amount"), lambda window: [span.count for span in window.series(BEGIN, END, step=DAY)]),
    "TimeWeighted": _window(TimeWeighted("amount"), _level_of),
    "Percentiles": _of(Percentiles, lambda counters, part: dict(counters.get(part, shop="a").bins), attribute="amount"),
    "ActiveMembers": _of(ActiveMembers, _rolling, member="buyer", time="at", longest=3 * DAY),
    "Extremes": _of(Extremes, _extremes, attribute="amount", show="id"),
    "Ranks": _of(Ranks, _boards, score="amount", least=0, most=9999),
}


def correction(measured: Measured) -> str:
    declared, changed = measured.declare(), _sold(2, 3, 5, "ann", 2)
    with counters_in_memory([declared], now=END) as counters:
        counters.accept_many(SALE, SALES)
        counters.accept(SALE, changed)
        counters.retract(SALE, SALES[4])
        actual = measured.read(counters, declared)
    expected = measured.of([SALES[0], SALES[2], SALES[3], changed])
    assert expected != measured.of(SALES), "the operation changes nothing that is read"
    return "exact" if actual == expected else "wrong"


def in_pages(measured: Measured) -> str:
    try:
        actual = measured.of(SALES, pages=True)
    except InvalidArgumentError:
        return "refused"
    except TypeError:
        paged = {isinstance(part, Aggregate) and part.pages for part in flatten([measured.declare()])}
        return "always" if paged == {True} else "refused"
    return "exact" if actual == measured.of(SALES) else "wrong"


def recorded_once(measured: Measured) -> str:
    declared = measured.declare()
    with counters_in_memory([declared], now=END) as counters:
        try:
            for sale in SALES:
                assert counters.record_once(SALE, sale, [declared]).status == "accepted"
        except InvalidArgumentError:
            return "refused"
        return "exact" if measured.read(counters, declared) == measured.of(SALES) else "wrong"


COLUMNS: Final = {"correction": correction, "pages": in_pages, "`record_once`": recorded_once}


def _table() -> dict[tuple[str, str], str]:
    """Return the cells of the page by measure and column."""
    text = (Path(__file__).parents[2] / "docs" / "declarations.md").read_text(encoding="utf-8")
    match = re.search(r"^\| measure \|.*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)
    assert match is not None
    [head, _, *rows] = [[cell.strip() for cell in line.strip("| ").split("|")] for line in match[0].splitlines()]
    return {
        (measure.strip("`"), name): cell
        for measures, *cells in rows
        for measure in measures.split(", ")
        for name, cell in zip(head[1:], cells, strict=True)
    }


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", MEASURES)
def test_a_cell_says_what_the_measure_does(name: str, column: str) -> None:
    assert COLUMNS[column](MEASURES[name]) == _table()[name, column]
