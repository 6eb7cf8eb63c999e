"""Crossings while EventBridge refuses: counting goes on, and each is delivered, in the order of its group."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from dynamodb_counters import Aggregate, Event, Threshold
from simulation.counters_in_memory import Faults, counters_in_memory
from simulation.night import scaled
from simulation.notices import Bus, NotifierMapping

CALL = Event("call", key="id", version="revision")
USAGE = Aggregate("usage", CALL, pk="USAGE#{customer}", sk="USAGE")
PLAN = Threshold("plan", USAGE, at=[1, 2, 4, 7], direction="both")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FAULTS = Faults(crash=0.2, redeliver=0.3, split=0.1)
_OUTAGE = timedelta(hours=1)
_MOST_TRIES = 10_000


def test_an_outage_of_eventbridge_holds_up_no_count_and_loses_no_crossing() -> None:
    for seed in range(scaled(10)):
        _check(seed)


def _check(seed: int) -> None:
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
        assert any(not mapping.deliver() for _ in range(_MOST_TRIES)), seed
        records = [record for shard in stream.shards() for record in stream.read(shard.id, None, 10**9).records]
        outbox = [item for item in counters._tables[0].items() if item["_type"] == {"S": "_crossing"}]
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
