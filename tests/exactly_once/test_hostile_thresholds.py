"""Hostile levels and items: each is refused with the argument that is wrong, or counts, and nothing waits."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Event, InvalidArgumentError, Sum, Threshold
from dynamodb_counters._declarations import flatten
from simulation.night import scaled
from simulation.workbench import Workbench

CALL = Event("call", key="id")
USAGE = Aggregate("usage", CALL, pk="USAGE#{customer}", sk="USAGE", units=Sum("units"))
PAGED = Aggregate("paged", CALL, by="customer", units=Sum("units"), pages=True)
HIGH = Threshold("high", USAGE, at=[-1, 0, Decimal("1E-130"), 10**37, Decimal("9.9E+125")], direction="both")
IN_PAGES = Threshold("in-pages", PAGED, at=[Decimal("1E-130"), 1], direction="both")
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
def test_2500_hostile_thresholds_are_refused_or_stand(seed: int) -> None:
    rng, refused = random.Random(seed), list[bool]()
    arguments = ("at", "measure", "direction", "burst", "once", "name", "aggregate")
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
    bench = Workbench(flatten([USAGE, PAGED, HIGH, IN_PAGES]))
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
                name = rng.choice(("_other", "%=c1", "units2"))
                bench.table.put_item(TableName=bench.table.name, Item={**item, name: rng.choice(values)})
    bench.deliver_all()
    for customer in range(7):
        expected = len(range(customer, 60, 7))
        assert bench.counters.get(USAGE, customer=f"c{customer}")["units"] == expected
        assert bench.counters.get(PAGED, customer=f"c{customer}")["units"] == expected


def test_each_change_that_a_spoiled_item_keeps_from_crossing_is_counted() -> None:
    bench = Workbench(flatten([USAGE, HIGH]))
    bench.counters.accept(CALL, {"id": 1, "customer": "a", "units": 5})
    bench.deliver_all()
    [item] = [each for each in bench.table.items() if each["_type"] == {"S": "usage"}]
    # Of the second, the image before is the spoiled one.
    for spoiled in ({"units": {"S": "x"}}, {}, {"pk": {"S": "USAGE"}}):
        known = len(bench.records())
        bench.table.put_item(TableName=bench.table.name, Item={**item, **spoiled})
        assert bench.deliver(bench.records()[known:]).skipped_thresholds == {"high": 1}
