"""Percentiles: within their error of the nearest rank, whatever is delivered or corrected, and whatever the values."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from benchmarks import workloads
from dynamodb_counters import Distribution, Event, Packed, Percentiles
from dynamodb_counters._items.log_bins import LogBins, is_bin
from dynamodb_counters.errors import InvalidArgumentError
from dynamodb_counters.testing import Faults, counters_in_memory
from simulation.night import scaled

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
REQUEST = Event("request", key="id", version="revision")
PACKED = Event("call", key=("id", "at"), packed=Packed("at"))
FAULTS = Faults(crash=0.3, redeliver=0.4, split=0.1)
SHARES = (0, 0.01, 0.5, 0.9, 0.99, 0.999, 1)
ERRORS = ("0.001", "0.01", "0.05", "0.5")


def _values(kind: str, rng: random.Random, count: int) -> list[Decimal]:
    each: dict[str, Callable[[], Decimal]] = {
        "log-normal": lambda: Decimal(repr(round(rng.lognormvariate(5, 2), 3))),
        "uniform": lambda: Decimal(rng.randrange(1, 1_000_000)),
        "adversarial": lambda: rng.choice(
            [
                Decimal(0),
                Decimal("1E-130"),
                Decimal("9.9E125"),
                -Decimal(rng.randrange(1, 999)),
                Decimal(10) ** rng.randrange(-60, 60),
            ]
        ),
    }
    return [each[kind]() for _ in range(count)]


def _rank(values: Sequence[Decimal], share: float) -> Decimal:
    return sorted(values)[max(1, math.ceil(Decimal(str(share)) * len(values))) - 1]


def _is_within(found: Decimal | None, wanted: Decimal, error: str) -> bool:
    return found is not None and abs(found - wanted) <= abs(wanted) * Decimal(error)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("kind", ["log-normal", "uniform", "adversarial"])
def test_no_value_differs_from_its_bin_by_more_than_the_error(kind: str, error: str) -> None:
    bins = LogBins(Decimal(error))
    for value in _values(kind, random.Random(1), scaled(200)):
        name = bins.name_of(value)
        assert is_bin(name)
        assert _is_within(bins.value_of(name), value, error), value


@pytest.mark.parametrize("error", ["0.001", "0.01", "0.5"])
def test_the_bounds_of_bins_belong_to_the_lower_one(error: str) -> None:
    bins = LogBins(Decimal(error))
    for index in (-200, -1, 0, 1, 2, 200):
        bound = bins._bound(index)
        assert bins.name_of(bound) == str(index)
        assert bins.name_of(bound * (1 + Decimal("1E-20"))) == str(index + 1)


@pytest.mark.parametrize("source", [REQUEST, PACKED], ids=["plain", "packed"])
@pytest.mark.parametrize("seed", range(scaled(1)))
def test_percentiles_are_those_of_the_events_there_are(seed: int, source: Event) -> None:
    rng, kept = random.Random(seed), dict[str, dict[str, Any]]()
    sizes = Percentiles("sizes", source, by="route", attribute="ms", error=0.02)
    timed = Percentiles("timed", source, by="route", attribute="ms", time="at")
    daily = Percentiles("daily", source, by=("at:day", "route"), attribute="ms", retention=timedelta(days=40))

    def event(key: str) -> dict[str, Any]:
        [value] = _values("log-normal", rng, 1)
        at = (START + rng.randrange(48) * HOUR + timedelta(seconds=rng.randrange(3600))).isoformat()
        return {"id": key, "at": at, "route": rng.choice("ab"), "ms": value, "revision": 1}

    with counters_in_memory([sizes, timed, daily], now=START + 50 * HOUR, seed=seed, faults=FAULTS) as counters:
        for batch in range(5):
            events = [event(f"e{batch}-{number}") for number in range(rng.choice((1, 20, 150)))]
            counters.accept_many(source, events).raise_for_rejected()
            kept |= {each["id"]: each for each in events}
            for key in rng.sample(sorted(kept), min(len(kept), 8)):
                if source is REQUEST and rng.random() < 0.6:
                    kept[key] = {**event(key), "revision": kept[key]["revision"] + 1}
                    counters.accept(source, kept[key])
                else:
                    counters.retract(source, kept.pop(key))
        for route in "ab":
            own = [each for each in kept.values() if each["route"] == route]
            _agree(counters.distribution(sizes, route=route), own, "0.02")
            reader = counters.distributions(timed, route=route)
            _agree(reader.between(START, START + 48 * HOUR), own, "0.01")
            by_hour = reader.series(START, START + 48 * HOUR, step=6 * HOUR)
            for step, found in enumerate(by_hour):
                ends = [(START + hours * HOUR).isoformat() for hours in (6 * step, 6 * step + 6)]
                _agree(found, [each for each in own if ends[0] <= each["at"] < ends[1]], "0.01")
            first_day = [each for each in own if each["at"] < "2026-01-02"]
            _agree(counters.distribution(daily, {"at:day": "2026-01-01", "route": route}), first_day, "0.01")


def _agree(found: Distribution, events: Sequence[dict[str, Any]], error: str) -> None:
    assert found.count == len(events)
    for share in SHARES:
        if events:
            assert _is_within(found.p(share), _rank([each["ms"] for each in events], share), error)
        else:
            assert found.p(share) is None


def test_a_chunk_with_more_bins_than_an_update_takes_is_counted() -> None:
    wide = Percentiles("wide", PACKED, attribute="ms", error=0.001)
    values = [Decimal(repr(round(1.004**number, 6))) for number in range(1500)]
    events = [{"id": f"{n}", "at": START.isoformat(), "ms": value} for n, value in enumerate(values)]
    with counters_in_memory([wide], now=START) as counters:
        counters.accept_many(PACKED, events).raise_for_rejected()
        _agree(counters.distribution(wide), events, "0.001")


@pytest.mark.night
def test_percentiles_of_the_real_log_are_within_their_error() -> None:
    if not workloads.LOG.exists():
        pytest.skip(f"{workloads.LOG.name} is not there")
    sizes = [Decimal(each["bytes"]) for each in workloads.log_in_full()]
    for error in ERRORS:
        declared = Percentiles("sizes", PACKED, attribute="ms", error=Decimal(error))
        events = [{"id": f"{n}", "at": START.isoformat(), "ms": size} for n, size in enumerate(sizes)]
        with counters_in_memory([declared], now=START) as counters:
            counters.accept_many(PACKED, events).raise_for_rejected()
            _agree(counters.distribution(declared), events, error)


@pytest.mark.parametrize("share", [-0.1, 1.1, True, "0.5"])
def test_a_share_that_is_none_is_refused(share: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="a number from 0 to 1"):
        Distribution({}).p(share)
