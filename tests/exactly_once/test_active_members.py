"""Active members: any span, past or present, equals the union of its members, whatever is delivered or corrected."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import ActiveMembers, Event, Packed, WindowReader
from dynamodb_counters._items.bookkeeping import item_bytes, write_units
from dynamodb_counters.errors import InvalidArgumentError
from simulation.counters_in_memory import Faults, counters_in_memory
from simulation.night import scaled
from tests.exactly_once.test_measure_guards import gaps_of

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
VIEW = Event("view", key="id", version="revision")
PACKED = Event("click", key=("id", "sent"), packed=Packed("sent"))
FAULTS = Faults(crash=0.3, redeliver=0.4, split=0.1)
LONGEST = 12


def _users(source: Event, **changes: Any) -> ActiveMembers:
    arguments: dict[str, Any] = {"by": "url", "member": "client", "time": "time", "longest": LONGEST * DAY, **changes}
    return ActiveMembers("users", source, **arguments)


def _event(rng: random.Random, number: int, days: int) -> dict[str, Any]:
    moment = START + timedelta(days=rng.randrange(days), seconds=rng.randrange(86_400))
    return {
        "id": f"e{number}",
        "sent": START.isoformat(),
        "time": moment.isoformat(),
        "url": rng.choice("ab"),
        "client": f"c{rng.randrange(8)}",
        "revision": 1,
    }


def _day(event: dict[str, Any]) -> int:
    return (datetime.fromisoformat(event["time"]) - START).days


def _active(events: Iterable[dict[str, Any]], url: str, first: int, last: int) -> int:
    return len({each["client"] for each in events if each["url"] == url and first <= _day(each) <= last})


def _read(users: WindowReader[Any], first: int, last: int) -> Any:
    return users.between(START + first * DAY, START + (last + 1) * DAY).count


@pytest.mark.parametrize("source", [VIEW, PACKED], ids=["plain", "packed"])
@pytest.mark.parametrize("seed", range(scaled(1)))
def test_any_span_has_as_many_members_as_are_active_in_it(seed: int, source: Event) -> None:
    # Stretches of 360 days begin with day 20,520 since 1970, which is 2026-03-08.
    rng, days, users = random.Random(seed), 100, _users(source)
    kept: dict[str, dict[str, Any]] = {}
    with counters_in_memory([users], now=START + 200 * DAY, seed=seed, faults=FAULTS) as counters:
        for batch in range(5):
            events = [_event(rng, batch * 100 + number, days) for number in range(rng.choice((1, 20, 90)))]
            counters.accept_many(source, [{**each, "sent": counters.clock.now.isoformat()} for each in events])
            kept |= {each["id"]: {**each, "sent": counters.clock.now.isoformat()} for each in events}
            for key in rng.sample(sorted(kept), min(len(kept), 8)):
                if source is VIEW and rng.random() < 0.6:
                    changed = {**_event(rng, 0, days), "id": key, "sent": kept[key]["sent"]}
                    kept[key] = {**changed, "revision": kept[key]["revision"] + 1}
                    counters.accept(source, kept[key])
                else:
                    counters.retract(source, kept.pop(key))
        for url in "ab":
            reader = counters.window(users, url=url)
            for last in range(days):
                for length in (1, 2, 5, LONGEST):
                    first = last - length + 1
                    assert _read(reader, first, last) == _active(kept.values(), url, first, last), (first, last)
            rolling = reader.rolling(START, START + days * DAY)
            assert [each.count for each in rolling] == [
                _active(kept.values(), url, last - LONGEST + 1, last) for last in range(days)
            ]


def test_gaps_divide_the_members_of_each_day() -> None:
    users = _users(VIEW)
    active = {"a": (0, 1, 5, 30), "b": (1, 2, 14), "c": (13, 25)}
    with counters_in_memory([users], now=START + 60 * DAY) as counters:
        for member, days in active.items():
            for day in days:
                values = {**_event(random.Random(1), 0, 1), "id": f"{member}{day}", "url": "a", "client": member}
                counters.accept(VIEW, {**values, "time": (START + day * DAY).isoformat()})
        found = {day: gaps_of(counters, users, START + day * DAY, url="a") for day in range(31)}
    assert {day: gaps for day, gaps in found.items() if gaps} == {
        0: {LONGEST: 1},
        1: {1: 1, LONGEST: 1},
        2: {1: 1},
        5: {4: 1},
        13: {LONGEST: 1},
        14: {LONGEST: 1},  # b, after 12 days
        25: {LONGEST: 1},  # c, after 12 days
        30: {LONGEST: 1},  # a, after 25 days
    }


@pytest.mark.parametrize(
    ("unit", "length"), [(timedelta(minutes=1), 186), (timedelta(hours=1), 24), (DAY, 1)], ids=["minute", "hour", "day"]
)
def test_members_are_counted_to_any_precision(unit: timedelta, length: int) -> None:
    users = _users(VIEW, precision=unit, longest=length * unit)
    rng, units = random.Random(1), sorted(random.Random(2).sample(range(800), 60))
    events = [{**_event(rng, n, 1), "url": "a", "time": (START + at * unit).isoformat()} for n, at in enumerate(units)]
    with counters_in_memory([users], now=START + 900 * unit) as counters:
        counters.accept_many(VIEW, events)
        for last in range(0, 800, 7):
            first = last - length + 1
            span = {each["client"] for each, at in zip(events, units, strict=True) if first <= at <= last}
            reader = counters.window(users, url="a")
            assert reader.between(START + first * unit, START + (last + 1) * unit).count == len(span)


def test_a_span_longer_than_the_longest_is_refused() -> None:
    with counters_in_memory([_users(VIEW)]) as counters:
        reader = counters.window(_users(VIEW), url="a")
        with pytest.raises(InvalidArgumentError, match="at most 12 days, 0:00:00, the longest of 'users'"):
            reader.last(timedelta(days=13))


def test_a_member_of_whom_a_chunk_has_a_whole_stretch_counts() -> None:
    users = ActiveMembers("users", PACKED, member="client", time="time", longest=12 * DAY)
    events = [
        {"id": f"{n}", "sent": START.isoformat(), "time": (START + n * DAY).isoformat(), "client": "c"}
        for n in range(1000)
    ]
    with counters_in_memory([users], now=START) as counters:
        counters.accept_many(PACKED, events).raise_for_rejected()
        rolling = counters.window(users).rolling(START, START + 1000 * DAY)
    assert {each.count for each in rolling} == {1}


@pytest.mark.night
def test_a_page_of_150_active_units_takes_one_write_unit() -> None:
    # Stretches of 342 days begin with day 20,520 since 1970, which is 2026-03-08.
    days = range(66, 66 + 150)
    events = [
        {**_event(random.Random(1), 0, 1), "id": f"{day}", "client": "c", "time": (START + day * DAY).isoformat()}
        for day in days
    ]
    with counters_in_memory([_users(VIEW, longest=30 * DAY)], now=START + 400 * DAY) as counters:
        counters.accept_many(VIEW, events).raise_for_rejected()
        [page] = [item for item in counters._tables[0].items() if item["sk"]["S"].startswith("PAGE#users-members#")]
    assert write_units(item_bytes(page)) == 1
