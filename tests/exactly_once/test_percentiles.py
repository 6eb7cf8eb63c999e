"""Percentiles: within their error of the nearest rank, whatever is delivered or corrected, and whatever the values."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from benchmarks import workloads
from demo.blog.access_log import read_log
from dynamodb_counters import Distribution, Event, Packed, Percentiles
from dynamodb_counters._items.derived_fields import LogBins, is_bin
from dynamodb_counters.errors import InvalidArgumentError
from simulation.counters_in_memory import counters_in_memory
from simulation.night import scaled

START = datetime(2026, 1, 1, tzinfo=UTC)
PACKED = Event("call", key=("id", "at"), packed=Packed("at"))
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
    sizes = [Decimal(view.size or 0) for view in read_log(workloads.LOG) if view is not None]
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
