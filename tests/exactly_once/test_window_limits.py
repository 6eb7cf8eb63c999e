"""A limit asked of a window: no trailing time holds more than the limit, as long as nothing lags."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Sum, Window
from tests.unit.fold.buckets import JOB, Buckets, fold

_C = {"customer": "c"}
_WINDOW = Window("jobs", JOB, pk="CUSTOMER#{customer}", time="at", measure=Sum("amount"), future_tolerance=None)
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
        """What the log holds of the trailing time, both ends included."""
        return sum(n for at, n in self.log if now - self.last.total_seconds() <= at <= now)


def test_a_full_limit_is_not_admitted_again_a_second_later() -> None:
    limiter = Limiter(_WINDOW, 300, _MINUTE)

    assert limiter.ask(_START + 59.5, 300)
    assert not limiter.ask(_START + 60.5)
    assert not limiter.ask(_START + 119.9)
    assert limiter.ask(_START + 120, 300)


def test_a_limit_is_asked_of_all_that_a_window_retains() -> None:
    kept = Window("jobs", JOB, pk="CUSTOMER#{customer}", time="at", retention=timedelta(hours=1), measure=Sum("amount"))
    limiter = Limiter(kept, 5, timedelta(hours=1))

    assert limiter.ask(_START + 30.5, 5)
    assert not limiter.ask(_START + 3_630)
    assert limiter.ask(_START + 3_660, 5)


@pytest.mark.parametrize("precision", [timedelta(seconds=1), _MINUTE, timedelta(hours=1), timedelta(days=1)])
def test_no_trailing_time_holds_more_than_the_limit(precision: timedelta) -> None:
    admitted = refused = 0
    for seed in range(20):
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


def test_a_refusal_looks_back_less_than_a_unit_too_far() -> None:
    limiter = Limiter(_WINDOW, 1, 5 * _MINUTE)

    assert limiter.ask(_START)
    assert not limiter.ask(_START + 359.9)
    assert limiter.ask(_START + 360)


def test_what_a_clock_ahead_has_timed_counts_from_then_on() -> None:
    limiter = Limiter(_WINDOW, 5, _MINUTE)
    limiter.buckets.write(fold(_WINDOW, [(_START + 60, 5)]))

    assert limiter.ask(_START + 59.9)
    assert not limiter.ask(_START + 60)


def test_a_sum_that_an_event_lowers_does_not_hold_a_limit() -> None:
    limiter = Limiter(_WINDOW, 5, _MINUTE)
    limiter.buckets.write(fold(_WINDOW, [(_START, -5), (_START + 30, 5)]))

    assert limiter.ask(_START + 70, 5)
    assert limiter.trailing(_START + 70) + 5 == 10
