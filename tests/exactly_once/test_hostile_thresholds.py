"""Hostile limits, levels and items: each is refused with the argument that is wrong, or counts, and nothing waits."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Event, InvalidArgumentError, Sum, Threshold
from dynamodb_counters._declarations import flatten
from dynamodb_counters.testing import counters_in_memory
from simulation.night import scaled
from simulation.workbench import Workbench

CALL = Event("call", key="id")
USAGE = Aggregate("usage", CALL, pk="USAGE#{customer}", sk="USAGE", units=Sum("units"))
PAGED = Aggregate("paged", CALL, by="customer", units=Sum("units"), pages=True)
SHARE = Threshold("share", USAGE, at=[Decimal("0.8"), 1], of="limit", direction="both")
HIGH = Threshold("high", USAGE, at=[-1, 0, Decimal("1E-130"), 10**37, Decimal("9.9E+125")], direction="both")
IN_PAGES = Threshold("in-pages", PAGED, at=[Decimal("1E-130"), 1], of="limit", direction="both")
HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1, 10**37, 10**38, 10**40, -(10**40), 0.1, 0.1 + 0.2, 1e300, 5e-324),
    *(float("nan"), float("inf"), float("-inf"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("-0")),
    *(Decimal("1E-130"), Decimal("1E-131"), Decimal("9.9E+125"), Decimal("1E+126"), Decimal("1." + "9" * 40)),
    *("", "10", "limit", b"1", [], [1], (1, 2), {}, {"N": "1"}, {1}, object(), 1j, range(3), type, ...),
]


def _drawn(rng: random.Random) -> Any:
    draw = rng.random()
    if draw < 0.6:
        return rng.choice(HOSTILE)
    if draw < 0.8:
        return rng.choice((-1, 1)) * Decimal(rng.randrange(10 ** rng.randrange(1, 60))).scaleb(rng.randrange(-150, 140))
    return [_drawn(rng) for _ in range(rng.randrange(4))]


@pytest.mark.parametrize("seed", range(scaled(1)))
def test_2500_hostile_limits_are_refused_or_hold(seed: int) -> None:
    rng, held, refused = random.Random(seed), 0, list[str]()
    with counters_in_memory([USAGE, PAGED, SHARE, HIGH, IN_PAGES]) as counters:
        for number in range(2_500):
            aggregate, limit = rng.choice((USAGE, PAGED)), _drawn(rng)
            try:
                counters.set_limit(aggregate, limit, customer="a")
            except InvalidArgumentError as error:
                refused.append(error.argument)
            else:
                expected = None if limit is None else Decimal(str(limit))
                assert counters.limit(aggregate, customer="a") == expected, limit
                held += 1
            if number % 50 == 0:
                counters.accept(CALL, {"id": number, "customer": "a", "units": rng.choice((-1, 1, 10**30))})
        counters.require_all_counted()
    assert held > 100
    assert len(refused) > 1_000
    assert {*refused} == {"limit"}


@pytest.mark.parametrize("seed", range(scaled(1)))
def test_2500_hostile_thresholds_are_refused_or_stand(seed: int) -> None:
    rng, refused = random.Random(seed), list[bool]()
    arguments = ("at", "of", "measure", "direction", "burst", "once", "name", "aggregate")
    good: dict[str, Any] = {"name": "plan", "aggregate": USAGE, "at": [1, 2]}
    for _ in range(2_500):
        wrong = {name: _drawn(rng) for name in rng.sample(arguments, rng.choice((1, 1, 2)))}
        try:
            threshold = Threshold(**(good | wrong))
            flatten([USAGE, threshold])
        except InvalidArgumentError as error:
            refused.append(error.argument in {*wrong, "aggregate"})
    assert len(refused) > 1_500
    assert all(refused)


@pytest.mark.parametrize("seed", range(scaled(1)))
def test_items_that_other_code_has_spoiled_cross_nothing_and_hold_up_nothing(seed: int) -> None:
    rng = random.Random(seed)
    bench = Workbench(flatten([USAGE, PAGED, SHARE, HIGH, IN_PAGES]))
    bench.aggregator.handle({})
    values: list[Any] = [
        {"S": "x"},
        {"N": "1"},
        {"NULL": True},
        {"L": []},
        {"B": b"1"},
        {"N": "9.9E+125"},
        {"BOOL": True},
    ]
    for number in range(60):
        bench.counters.accept(CALL, {"id": number, "customer": f"c{number % 7}", "units": 1})
        bench.deliver_all()
        for item in list(bench.table.items()):
            if item["_type"]["S"] in ("usage", "paged") and rng.random() < 0.5:
                name = rng.choice(("_limit", "_limit_before", "%=c1", "&=c2", "units2"))
                bench.table.put_item(TableName=bench.table.name, Item={**item, name: rng.choice(values)})
    bench.deliver_all()
    for customer in range(7):
        expected = len(range(customer, 60, 7))
        assert bench.counters.get(USAGE, customer=f"c{customer}")["units"] == expected
        assert bench.counters.get(PAGED, customer=f"c{customer}")["units"] == expected


def test_each_change_that_a_spoiled_item_keeps_from_crossing_is_counted() -> None:
    bench = Workbench(flatten([USAGE, SHARE, HIGH]))
    bench.counters.set_limit(USAGE, 5, customer="a")
    bench.deliver_all()
    [item] = [each for each in bench.table.items() if each["_type"] == {"S": "usage"}]
    for spoiled, skipped in (
        ({"units": {"S": "x"}}, {"share": 1, "high": 1}),
        # The image before is the spoiled one.
        ({}, {"share": 1, "high": 1}),
        ({"_limit": {"S": "x"}}, {"share": 1}),
        ({"pk": {"S": "USAGE"}, "units": {"N": "5"}}, {"share": 1, "high": 1}),
    ):
        known = len(bench.records())
        bench.table.put_item(TableName=bench.table.name, Item={**item, **spoiled})
        assert bench.deliver(bench.records()[known:]).skipped_thresholds == skipped


def test_a_limit_that_other_code_has_spoiled_is_set_again() -> None:
    bench = Workbench(flatten([USAGE, SHARE]))
    bench.aggregator.handle({})
    bench.counters.set_limit(USAGE, 5, customer="a")
    [item] = [each for each in bench.table.items() if each["_type"] == {"S": "usage"}]
    bench.table.put_item(TableName=bench.table.name, Item={**item, "_limit": {"S": "x"}})
    bench.counters.set_limit(USAGE, 5, customer="a")
    assert bench.counters.limit(USAGE, customer="a") == 5
