"""Extremes: the largest and smallest values that there are, whatever is delivered, corrected or taken back."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal, localcontext
from typing import Any

import pytest

from dynamodb_counters import Event, Extremes, Packed
from dynamodb_counters._items.conversions import format_number
from dynamodb_counters._items.derived_fields import is_ordered_text, ordered_text, value_of
from simulation.counters_in_memory import Faults, counters_in_memory
from simulation.night import scaled

START = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = Event("request", key="id", version="revision")
PACKED = Event("call", key=("id", "at"), packed=Packed("at"))
FAULTS = Faults(crash=0.3, redeliver=0.4, split=0.1)


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
        assert all(is_ordered_text(text) and value_of(text) == number for text, number in texts)


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
            found = counters.largest(slowest, route=route, count=5)
            assert [(each.value, each.shown["id"]) for each in found] == ordered[::-1][:5]
            found = counters.smallest(slowest, route=route, count=500)
            assert [(each.value, each.shown["id"]) for each in found] == ordered
            by_time = sorted((datetime.fromisoformat(each["at"]), each["id"], str(each["ms"])) for each in own)
            found = counters.largest(latest, route=route)
            assert [(each.value, each.shown["id"], each.shown["ms"]) for each in found] == by_time[-1:]


def test_equal_values_are_one_with_the_number_of_their_items() -> None:
    sizes = Extremes("sizes", REQUEST, attribute="ms")
    with counters_in_memory([sizes]) as counters:
        for number, size in enumerate([3, 7, 7]):
            counters.accept(REQUEST, {"id": f"{number}", "ms": size, "revision": 1})
        [largest] = counters.largest(sizes)
    assert (largest.value, largest.items, largest.shown) == (7, 2, {})
