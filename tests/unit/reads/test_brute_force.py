"""Any question about random events, answered from buckets and by counting the events one by one."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from dynamodb_counters import Count, Sum, WindowCount
from simulation.night import NIGHT, scaled
from tests.unit.fold.buckets import JOBS, Buckets, Number, fold

WORLDS, QUESTIONS = scaled(15), 40

_C = {"customer": "c"}
_UNITS = [timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)]
_LONGEST = [timedelta(minutes=15), timedelta(hours=1), *map(timedelta, (1, 7, 30, 90, 366, 1200))]
_ZONES = [
    "Africa/Cairo",  # clocks skip midnight
    "Africa/Casablanca",  # clocks change for Ramadan
    "America/Havana",  # midnight comes twice
    "America/New_York",
    "America/St_Johns",  # -03:30
    "Asia/Beirut",  # midnight is skipped, and 23:00 comes twice
    "Asia/Kathmandu",  # +05:45
    "Asia/Kolkata",
    "Australia/Lord_Howe",  # clocks change by half an hour
    "Europe/Berlin",
    "Pacific/Chatham",  # +12:45, with summer time
    "UTC",
]
# From where on every clock above changes on a quarter of an hour, to which the oracle below is exact.
_FIRST, _LAST = datetime(2012, 1, 1, tzinfo=UTC), datetime(2026, 12, 31, tzinfo=UTC)


class World:
    """A window, events, and the buckets they left."""

    def __init__(self, seed: int) -> None:
        self.random = dice = random.Random(seed)
        self.unit = dice.choice(_UNITS)
        self.longest = dice.choice([longest for longest in _LONGEST if longest >= self.unit])
        self.summed = dice.random() < 0.3
        measure = Sum("amount") if self.summed else Count()
        self.window = replace(JOBS, measure=measure, precision=self.unit, longest=self.longest)
        self.center = self.near(dice.randint(int(_FIRST.timestamp()), int(_LAST.timestamp())))
        self.events = [self._event() for _ in range(dice.choice([0, 1, 20, 200]))]
        self.buckets = Buckets()
        self.buckets.write(fold(self.window, self.events))

    def near(self, second: int) -> int:
        """Move a moment onto a boundary, or next to one, more often than not."""
        unit = self.random.choice([1, 60, 900, 3600, 86_400])
        return second // unit * unit + self.random.choice([-1, 0, 0, 0, 1])

    def moment(self) -> int:
        """Choose a moment that has to do with the events."""
        reach = int(self.longest.total_seconds() * 1.5)
        return self.near(self.center + self.random.randint(-reach, reach))

    def aware(self, second: int) -> datetime:
        """Make a datetime, with microseconds now and then."""
        return datetime.fromtimestamp(second, UTC) + timedelta(microseconds=self.random.choice([0, 0, 1, 999_999]))

    def counted(self, start: datetime, end: datetime) -> Number:
        """Count the events one by one."""
        first, last = start.timestamp(), end.timestamp()
        return sum(number if self.summed else 1 for second, number in self.events if first <= second < last)

    def _event(self) -> tuple[int, Number]:
        number: Number = self.random.choice([Decimal(1), Decimal(2), Decimal(-3), Decimal("0.125")])
        return (self.moment() if self.random.random() < 0.9 else self.center), number


def _last(world: World) -> list[WindowCount]:
    as_of = world.aware(world.moment())
    last = world.unit * world.random.randint(2, max(2, world.longest // world.unit))
    answer = world.buckets.counters.window(world.window, _C).last(last, as_of=as_of)
    assert as_of < answer.end <= as_of + world.unit
    assert answer.end - answer.start == last
    return [answer]


def _between(world: World) -> list[WindowCount]:
    start, end = sorted([world.aware(world.moment()), world.aware(world.moment())])
    if start == end:
        return []
    answer = world.buckets.counters.window(world.window, _C).between(start, end)
    assert start - world.unit < answer.start <= start
    assert end <= answer.end < end + world.unit
    return [answer]


def _calendar(world: World) -> list[WindowCount]:
    zone, as_of = world.random.choice(_ZONES), world.aware(world.moment())
    period: Any = world.random.choice(["day", "week", "month", "year"])
    answer = world.buckets.counters.window(world.window, _C).calendar(period, tz=zone, as_of=as_of)
    assert as_of < answer.end <= as_of + world.unit
    start = _began(period, as_of, ZoneInfo(zone))
    assert start - world.unit < answer.start <= start
    return [answer]


def _series(world: World) -> list[WindowCount]:
    zone, start = world.random.choice(_ZONES), world.aware(world.moment())
    step: Any = world.random.choice(["hour", "day", "week", "month", world.unit * world.random.randint(1, 50)])
    if step == "hour" and world.unit > timedelta(hours=1):
        return []
    length = {"hour": 1 / 24, "day": 1, "week": 7, "month": 31}.get(step) if isinstance(step, str) else None
    end = start + (timedelta(days=length) if length else step) * world.random.randint(1, 9) + timedelta(seconds=1)
    answers = world.buckets.counters.window(world.window, _C).series(start, end, step=step, tz=zone)
    assert start - world.unit < answers[0].start <= start
    assert end <= answers[-1].end < end + world.unit
    assert all(previous.end == current.start for previous, current in pairwise(answers))
    if isinstance(step, str) and step != "hour":
        for answer in answers[1:]:
            began = _began(step, answer.start + world.unit - timedelta(seconds=1), ZoneInfo(zone))
            assert answer.start <= began < answer.start + world.unit
    return answers


def _began(period: str, moment: datetime, zone: tzinfo) -> datetime:
    """Find when a local period began by looking at the clock every quarter of an hour."""
    day = moment.astimezone(zone).date() + timedelta(days=1)
    while _midnight(day, zone) > moment:
        day -= timedelta(days=1)
    while not {"day": True, "week": day.weekday() == 0, "month": day.day == 1, "year": (day.month, day.day) == (1, 1)}[
        period
    ]:
        day -= timedelta(days=1)
    return _midnight(day, zone)


@cache
def _midnight(day: date, zone: tzinfo) -> datetime:
    wall = datetime(day.year, day.month, day.day)  # noqa: DTZ001
    moment = wall.replace(tzinfo=UTC) - timedelta(hours=15)
    while moment.astimezone(zone).replace(tzinfo=None) < wall:
        moment += timedelta(minutes=15)
    return moment


def test_every_answer_is_exact_over_the_interval_it_states() -> None:
    total = 0
    for seed in range(WORLDS):
        world = World(seed)
        for number in range(QUESTIONS):
            ask = world.random.choice([_last, _last, _between, _calendar, _series])
            try:
                for answer in ask(world):
                    assert answer.count == world.counted(answer.start, answer.end)
                    total += 1
            except Exception as error:
                error.add_note(f"World({seed}), question {number}, {ask.__name__}, {world.window}")
                raise
    print(f"{total} answers")
    assert total >= 60 * WORLDS


@pytest.mark.parametrize("zone", _ZONES)
@pytest.mark.parametrize("year", [2014, 2019, 2024] if NIGHT else [2024])
def test_the_days_of_a_year_are_where_the_clocks_show_them(zone: str, year: int) -> None:
    buckets, tz = Buckets(), ZoneInfo(zone)
    start, end = (_midnight(date(number, 1, 1), tz) for number in (year, year + 1))
    days = buckets.counters.window(JOBS, _C).series(start, end, step="day", tz=zone)

    expected = [_midnight(date(year, 1, 1) + timedelta(days=number), tz) for number in range(len(days))]
    assert [day.start for day in days] == expected
    assert len(days) == (366 if year == 2024 else 365)
