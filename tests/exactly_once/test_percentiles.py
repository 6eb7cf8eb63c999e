"""Percentiles and extremes: right within their error, whatever is delivered, corrected or taken back."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal, localcontext
from typing import Any

import pytest

from benchmarks import workloads
from demo.blog.access_log import read_log
from dynamodb_counters import Distribution, Event, Extremes, Packed, Percentiles
from dynamodb_counters._items.conversions import format_number
from dynamodb_counters._items.derived_fields import LogBins, expected_text, ordered_text, value_of
from dynamodb_counters.errors import InvalidArgumentError
from simulation.counters_in_memory import Faults, counters_in_memory
from simulation.night import scaled

START = datetime(2026, 1, 1, tzinfo=UTC)
PACKED = Event("call", key=("id", "at"), packed=Packed("at"))
SHARES = (0, 0.01, 0.5, 0.9, 0.99, 0.999, 1)
ERRORS = ("0.001", "0.01", "0.05", "0.5")
REQUEST = Event("request", key="id", version="revision")
FAULTS = Faults(crash=0.3, redeliver=0.4, split=0.1)


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
        assert expected_text("ms:log0.01", name) is None
        assert _is_within(bins.value_of(name), value, error), value


@pytest.mark.parametrize("error", ["0.001", "0.01", "0.5"])
def test_the_bounds_of_bins_belong_to_the_lower_one(error: str) -> None:
    bins = LogBins(Decimal(error))
    for index in (-200, -1, 0, 1, 2, 200):
        bound = bins._bound(index)
        assert bins.name_of(bound) == str(index)
        assert bins.name_of(bound * (1 + Decimal("1E-20"))) == str(index + 1)


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
        _agree(counters.get(wide), events, "0.001")


@pytest.mark.night
def test_percentiles_of_the_real_log_are_within_their_error() -> None:
    if not workloads.LOG.exists():
        pytest.skip(f"{workloads.LOG.name} is not there")
    sizes = [Decimal(view.size or 0) for view in read_log(workloads.LOG) if view is not None]
    for error in ERRORS:
        declared = Percentiles("sizes", PACKED, attribute="ms", error=Decimal(error))
        events = [{"id": f"{n}", "at": START.isoformat(), "ms": size} for n, size in enumerate(sizes)]
        with counters_in_memory([declared], now=START) as counters:
            counters.accept_many(PACKED, events).raise_for_rejected()
            _agree(counters.get(declared), events, error)


@pytest.mark.parametrize("share", [-0.1, 1.1, True, "0.5"])
def test_a_share_that_is_none_is_refused(share: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="a number from 0 to 1"):
        Distribution({}).p(share)


def _numbers(rng: random.Random, count: int) -> list[Decimal]:
    found = [Decimal(text) for text in ("0", "1", "1.5", "10", "100", "9.9E125", "1E-130")]
    while len(found) < count:
        number = Decimal(rng.randrange(1, 10 ** rng.randrange(1, 38))).scaleb(rng.randrange(-130, 80))
        found += [number] if -130 <= number.adjusted() <= 125 else []
    return [*found, *(number.copy_negate() for number in found)]


def test_texts_are_in_the_order_of_their_numbers() -> None:
    numbers = _numbers(random.Random(1), 2000)
    with localcontext(Context(prec=300)):
        texts = sorted((ordered_text({"N": format_number(number)}), number) for number in numbers)
        assert [number for _, number in texts] == sorted(numbers)
        assert all(expected_text("ms:order", text) is None and value_of(text) == number for text, number in texts)


def test_texts_are_in_the_order_of_their_times() -> None:
    times = ["0001-01-01T00:00:01Z", "2026-11-20T10:30:00+02:00", "2026-11-20T08:30:00.000001Z", "9999-12-31T00:00:00Z"]
    texts = [ordered_text({"S": text}) for text in times]
    assert texts == sorted(texts)
    assert [value_of(text) for text in texts] == [datetime.fromisoformat(text) for text in times]


@pytest.mark.parametrize("source", [REQUEST, PACKED], ids=["plain", "packed"])
@pytest.mark.parametrize("seed", range(scaled(1)))
def test_extremes_are_those_of_the_events_there_are(seed: int, source: Event) -> None:
    rng, kept = random.Random(seed), dict[str, dict[str, Any]]()
    slowest = Extremes("slowest", source, by="route", attribute="ms", show="id")
    latest = Extremes("latest", source, by="route", attribute="at", show=("id", "ms"))

    def event(key: str) -> dict[str, Any]:
        at = (START + timedelta(seconds=rng.randrange(100))).isoformat()
        return {"id": key, "at": at, "route": rng.choice("ab"), "ms": rng.randrange(-20, 20), "revision": 1}

    with counters_in_memory([slowest, latest], now=START, seed=seed, faults=FAULTS) as counters:
        for batch in range(5):
            events = [event(f"e{batch}-{number:03d}") for number in range(rng.choice((1, 20, 60)))]
            counters.accept_many(source, events).raise_for_rejected()
            kept |= {each["id"]: each for each in events}
            # Those at the ends go first.
            by_ms = sorted(kept, key=lambda key: kept[key]["ms"])
            for key in {*by_ms[:8], *by_ms[-8:]}:
                if source is REQUEST and rng.random() < 0.3:
                    kept[key] = {**event(key), "revision": kept[key]["revision"] + 1}
                    counters.accept(source, kept[key])
                else:
                    counters.retract(source, kept.pop(key))
        for route in "ab":
            own = [each for each in kept.values() if each["route"] == route]
            ordered: list[Any] = sorted((each["ms"], each["id"]) for each in own)
            found = counters.extremes(slowest, route=route, count=5)
            assert [(each.value, each.shown["id"]) for each in found] == ordered[::-1][:5]
            found = counters.extremes(slowest, route=route, count=500, order="smallest")
            assert [(each.value, each.shown["id"]) for each in found] == ordered
            by_time = sorted((datetime.fromisoformat(each["at"]), each["id"], str(each["ms"])) for each in own)
            found = counters.extremes(latest, route=route)
            assert [(each.value, each.shown["id"], each.shown["ms"]) for each in found] == by_time[-1:]


def test_equal_values_are_one_with_the_number_of_their_items() -> None:
    sizes = Extremes("sizes", REQUEST, attribute="ms")
    with counters_in_memory([sizes]) as counters:
        for number, size in enumerate([3, 7, 7]):
            counters.accept(REQUEST, {"id": f"{number}", "ms": size, "revision": 1})
        [largest] = counters.extremes(sizes)
    assert (largest.value, largest.items, largest.shown) == (7, 2, {})
