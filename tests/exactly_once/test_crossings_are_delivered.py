"""Crossings while EventBridge refuses, and at the limits of numbers: counting goes on, and each is delivered."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pytest

from dynamodb_counters import Aggregate, Event, Sum, Threshold
from simulation.aws.json_integers import LARGEST
from simulation.counters_in_memory import CountersInMemory, Faults, counters_in_memory
from simulation.night import scaled
from simulation.notices import Bus, NotifierMapping

CALL = Event("call", key="id", version="revision")
USAGE = Aggregate("usage", CALL, pk="USAGE#{customer}", sk="USAGE")
PLAN = Threshold("plan", USAGE, at=[1, 2, 4, 7], direction="both")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FAULTS = Faults(crash=0.2, redeliver=0.3, split=0.1)
_OUTAGE = timedelta(hours=1)
LARGE_USAGE = Aggregate("usage", CALL, pk="USAGE#{customer}", sk="USAGE", units=Sum("units"))
TINY = Decimal("1E-130")
HUGE = Decimal("1E+125")
EDGES: Final = (2**53, LARGEST, LARGEST + 1, 10**20, 10**37)
LARGE_PLAN = Threshold(
    "plan",
    LARGE_USAGE,
    at=[-HUGE, *(-edge for edge in reversed(EDGES)), 0, TINY, *EDGES, HUGE, 5 * HUGE],
    direction="both",
)
UNITS: Final[dict[str, tuple[int | Decimal, ...]]] = {
    "whole": (1, -1, *EDGES, *(-edge for edge in EDGES)),
    "fraction": (Decimal("0.5"), LARGEST, -LARGEST, Decimal("-9223372036854775808.5")),
    "tiny": (TINY, 5 * TINY, -2 * TINY),
    "huge": (HUGE, -2 * HUGE, 3 * HUGE),
}
"""Numbers of each group: a sum of both huge and tiny ones has too many digits to be stored."""
_MOST_TRIES: Final = 10_000


def _finish(counters: CountersInMemory, mapping: NotifierMapping) -> list[dict[str, Any]]:
    """Deliver until nothing is left of the stream; return the items of the outbox."""
    assert any(not mapping.deliver() for _ in range(_MOST_TRIES)), "a shard waits"
    return [item for item in counters._tables[0].items() if item["_type"] == {"S": "_crossing"}]


@pytest.mark.parametrize("seed", range(scaled(10)))
def test_an_outage_of_eventbridge_holds_up_no_count_and_loses_no_crossing(seed: int) -> None:
    rng = random.Random(seed)
    with counters_in_memory([USAGE, PLAN], now=NOW, seed=seed, faults=FAULTS) as counters:
        ends, stream = NOW, counters._memory.tables[counters.table_name].stream
        bus = Bus(rng, lambda: counters.clock.now < ends)
        mapping = NotifierMapping(stream, rng, bus)
        there = dict.fromkeys("ab", 0)
        for number in range(12):
            customer = rng.choice("ab")
            if number == 3:
                ends = counters.clock.now + _OUTAGE
            if there[customer] and rng.random() < 0.4:
                there[customer] -= 1
                counters.retract(CALL, {"id": f"{customer}{there[customer]}"})
            else:
                counters.accept(CALL, {"id": f"{customer}{there[customer]}", "customer": customer, "revision": number})
                there[customer] += 1
            mapping.deliver()
            assert counters.get(USAGE, customer=customer)["usage"] == there[customer], seed
        counters.clock.advance(_OUTAGE)
        outbox = _finish(counters, mapping)
        records = [record for shard in stream.shards() for record in stream.read(shard.id, None, 10**9).records]
    assert {each["id"] for each in bus.taken} == {item["id"]["S"] for item in outbox}, seed
    for customer in ("a", "b"):
        taken = [each for each in bus.taken if each["group"]["customer"] == customer]
        sent = {each["id"]: (each["sequence"], each["level"]) for each in taken}
        assert [*sent.values()] == [*_due(records, customer)], (seed, customer)


def _due(records: list[dict[str, Any]], customer: str) -> Iterator[tuple[str, int]]:
    """Record and level of each crossing of a group, in the order in which its number went up and down."""
    for record in records:
        images = [record["dynamodb"].get(name) or {} for name in ("OldImage", "NewImage")]
        if images[1].get("_type") == {"S": "usage"} and record["dynamodb"]["Keys"]["pk"] == {"S": f"USAGE#{customer}"}:
            old, new = (int(image.get("usage", {"N": "0"})["N"]) for image in images)
            levels = [level for level in PLAN.at if min(old, new) < level <= max(old, new)]
            sequence = record["dynamodb"]["SequenceNumber"].zfill(40)
            yield from ((sequence, int(level)) for level in (levels if old < new else reversed(levels)))


def _delivered(seed: int, is_lasting: Callable[[dict[str, Any]], bool]) -> tuple[Bus, list[dict[str, Any]]]:
    """Details that EventBridge has taken, and items of the outbox, once nothing is left of the stream."""
    rng = random.Random(seed)
    with counters_in_memory([LARGE_USAGE, LARGE_PLAN], now=NOW, seed=seed, faults=FAULTS) as counters:
        stream = counters._memory.tables[counters.table_name].stream
        bus = Bus(rng, is_lasting=is_lasting)
        mapping = NotifierMapping(stream, rng, bus)
        for number in range(12):
            customer = rng.choice([*UNITS])
            event = {"id": f"{customer}{number % 3}", "customer": customer, "units": rng.choice(UNITS[customer])}
            counters.accept(CALL, event | {"revision": number})
            mapping.deliver()
            counters.get(LARGE_USAGE, customer=customer)
        counters.require_all_counted()
        return bus, _finish(counters, mapping)


def test_every_crossing_is_delivered_with_all_its_digits_and_no_shard_waits() -> None:
    crossed = 0
    for seed in range(scaled(6)):
        bus, outbox = _delivered(seed, lambda _: False)
        details = {detail["id"]: detail for detail in bus.taken}
        assert {*details} == {item["id"]["S"] for item in outbox}, seed
        for item in outbox:
            for name in ("level", "old", "new"):
                number = details[item["id"]["S"]][name]
                assert Decimal(number) == Decimal(item[name]["S"]), (seed, name)
                assert isinstance(number, str) == (not -LARGEST - 1 <= Decimal(number) <= LARGEST), (seed, name)
        crossed += len(outbox)
    assert crossed > scaled(45)


def test_a_crossing_that_is_refused_for_ever_holds_up_no_other() -> None:
    lasting = 0
    for seed in range(scaled(8)):
        bus, outbox = _delivered(seed, lambda detail: int(detail["id"], 16) % 3 == 0)
        expected = {item["id"]["S"] for item in outbox if int(item["id"]["S"], 16) % 3}
        assert {detail["id"] for detail in bus.taken} == expected, seed
        lasting += len(outbox) - len(expected)
    assert lasting > scaled(12)
