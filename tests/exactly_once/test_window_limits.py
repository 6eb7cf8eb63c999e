"""A limit asked of a window: no trailing time holds more than the limit, as long as nothing lags."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Sum, Window
from simulation.night import scaled
from tests.unit.fold.buckets import JOB, Buckets, fold

_C = {"customer": "c"}
_WINDOW = Window("jobs", JOB, pk="CUSTOMER#{customer}", time="at", measure=Sum("amount"), future_tolerance=None)
_KEPT = Window("jobs", JOB, pk="CUSTOMER#{customer}", time="at", retention=timedelta(hours=1), measure=Sum("amount"))
_MINUTE = timedelta(minutes=1)
_START = 1_795_000_020
"""A whole minute."""


@dataclass
class Limiter:
    """Serves what `allow` admits, counts it at once, and keeps an exact sliding log of it."""

    window: Window
    limit: int
    last: timedelta

    def __post_init__(self) -> None:
        self.buckets, self.log = Buckets(), list[tuple[float, int]]()

    def ask(self, now: float, n: int = 1) -> bool:
        self.buckets.now = now
        admitted = self.buckets.counters.window(self.window, _C).allow(self.limit, self.last, n=n)
        if admitted:
            self.buckets.write(fold(self.window, [(int(now), n)], created=now))
            self.log.append((now, n))
        return admitted

    def trailing(self, now: float) -> int:
        """Sum of the log over the trailing time, both ends included."""
        return sum(n for at, n in self.log if now - self.last.total_seconds() <= at <= now)


@pytest.mark.parametrize("precision", [timedelta(seconds=1), _MINUTE, timedelta(hours=1), timedelta(days=1)])
def test_no_trailing_time_holds_more_than_the_limit(precision: timedelta) -> None:
    admitted = refused = 0
    for seed in range(scaled(10)):
        dice = random.Random(seed)
        last = precision * dice.randint(1, 100)
        changes: dict[str, Any] = {"precision": precision, "longest": last}
        if dice.random() < 0.5:
            changes["retention"] = last
        window = Window("jobs", JOB, pk="CUSTOMER#{customer}", time="at", measure=Sum("amount"), **changes)
        limiter = Limiter(window, dice.randint(1, 20), last)
        now = float(_START)
        for _ in range(60):
            now += dice.choice([0.0, 0.4, precision.total_seconds(), last.total_seconds()]) * dice.random()
            if limiter.ask(now, dice.randint(1, 3)):
                admitted += 1
                assert limiter.trailing(now) <= limiter.limit, (seed, now)
            else:
                refused += 1
    assert admitted > 100
    assert refused > 100


Asked = list[tuple[float, int, bool]]
"""Seconds from the start, how many are asked for, and whether they are admitted."""


@pytest.mark.parametrize(
    ("limiter", "before", "asked"),
    [
        (
            Limiter(_WINDOW, 300, _MINUTE),
            [],
            [(59.5, 300, True), (60.5, 1, False), (119.9, 1, False), (120, 300, True)],
        ),
        (Limiter(_KEPT, 5, timedelta(hours=1)), [], [(30.5, 5, True), (3_630, 1, False), (3_660, 5, True)]),
        (Limiter(_WINDOW, 1, 5 * _MINUTE), [], [(0, 1, True), (359.9, 1, False), (360, 1, True)]),
        (Limiter(_WINDOW, 5, _MINUTE), [(60, 5)], [(59.9, 1, True), (60, 1, False)]),
        (Limiter(_WINDOW, 5, _MINUTE), [(0, -5), (30, 5)], [(70, 5, True)]),
    ],
    ids=[
        "a full limit is not admitted again a second later",
        "a limit is asked of all that a window retains",
        "a refusal looks back less than a unit too far",
        "what a clock ahead has timed counts from then on",
        "a sum that an event lowers does not hold a limit",
    ],
)
def test_a_limit_admits_what_its_window_has_room_for(
    limiter: Limiter, before: list[tuple[int, int]], asked: Asked
) -> None:
    if before:
        limiter.buckets.write(fold(limiter.window, [(_START + at, n) for at, n in before]))
    for at, n, is_admitted in asked:
        assert limiter.ask(_START + at, n) is is_admitted
