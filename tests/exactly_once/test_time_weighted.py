"""Levels: their value at any moment and their sum over any time, whatever is delivered or corrected."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from dynamodb_counters import Count, Event, Packed, TimeWeighted, Window
from dynamodb_counters.errors import InvalidArgumentError
from simulation.counters_in_memory import Faults, counters_in_memory
from simulation.night import scaled

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
CHANGE = Event("change", key="id", version="revision")
PACKED = Event("step", key=("id", "at"), packed=Packed("at"))
FAULTS = Faults(crash=0.3, redeliver=0.4, split=0.1)
DAYS = 90


def _level(events: Iterable[dict[str, Any]], at: datetime) -> Decimal:
    return Decimal(sum(each["seats"] for each in events if datetime.fromisoformat(each["at"]) < at))


def _integral(events: list[dict[str, Any]], start: datetime, end: datetime) -> Decimal:
    """The area below the level, step by step."""
    inside = sorted(moment for each in events if start < (moment := datetime.fromisoformat(each["at"])) < end)
    edges = [start, *inside, end]
    steps = pairwise(edges)
    return sum((_level(events, last) * ((last - first) // timedelta(seconds=1)) for first, last in steps), Decimal(0))


@pytest.mark.parametrize("source", [CHANGE, PACKED], ids=["plain", "packed"])
@pytest.mark.parametrize("seed", range(scaled(1)))
def test_a_level_and_its_integral_are_those_of_its_changes(seed: int, source: Event) -> None:
    rng, kept = random.Random(seed), dict[str, dict[str, Any]]()
    seats = Window("seats", source, by="team", time="at", measure=TimeWeighted("seats"))

    def event(key: str) -> dict[str, Any]:
        at = (START + timedelta(seconds=rng.randrange(DAYS * 86_400))).isoformat()
        change = rng.choice([1, -1, 5, Decimal("0.25"), Decimal("-12.5")])
        return {"id": key, "at": at, "team": rng.choice("ab"), "seats": change, "revision": 1}

    with counters_in_memory([seats], now=START + DAYS * DAY, seed=seed, faults=FAULTS) as counters:
        for batch in range(4):
            events = [event(f"e{batch}-{number}") for number in range(rng.choice((1, 10, 30)))]
            counters.accept_many(source, events).raise_for_rejected()
            kept |= {each["id"]: each for each in events}
            for key in rng.sample(sorted(kept), min(len(kept), 5)):
                if source is CHANGE and rng.random() < 0.6:
                    kept[key] = {**event(key), "revision": kept[key]["revision"] + 1}
                    counters.accept(source, kept[key])
                else:
                    counters.retract(source, kept.pop(key))
        for _ in range(60):
            team = rng.choice("ab")
            own = [each for each in kept.values() if each["team"] == team]
            first, last = sorted(rng.sample(range(DAYS * 1440), 2))
            start, end = START + first * MINUTE, START + last * MINUTE
            found = counters.window(seats, team=team).integral(start, end)
            assert (found.opening, found.closing) == (_level(own, start), _level(own, end))
            assert found.value == _integral(own, start, end)


def test_a_count_has_no_level() -> None:
    jobs = Window("jobs", CHANGE, time="at", measure=Count())
    expected = pytest.raises(InvalidArgumentError, match="expected one whose measure is TimeWeighted")
    with counters_in_memory([jobs]) as counters, expected:
        counters.window(jobs).integral(START, START + DAY)
