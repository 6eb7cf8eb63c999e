"""A flood of events that cannot be counted: those that can are counted at once, at a price in proportion."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from dynamodb_counters._declarations import Aggregate, Count, Event, Sum
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.night import scaled
from simulation.workbench import Workbench

EVENTS = scaled(1000)
SEED = 20_261_121
WAITING = 3000
MOST_READS = 10
SHARDS = 4
BATCH = 1000
SHOPS = tuple("abcdefgh")

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SALES = Aggregate("sales", SALE, pk="SALES#{shop}", sk="ALL", measures={"n": Count(), "sum": Sum("amount")})
VISITS = Aggregate("visits", SALE, pk="VISITS#{shop}", sk="ALL", measures={"n": Count()})


@dataclass(frozen=True)
class _Run:
    """Costs of counting all of a table's events: invocations, write units and requests of the aggregator."""

    shops: Counter[str]
    malformed: int
    quarantined: int
    invocations: int
    last_good: int
    """The invocation after which every good event was counted."""
    units: float
    requests: int
    seconds: float


def _run(good: int, malformed: int) -> _Run:
    rng = random.Random(SEED)
    bench = Workbench([SALES, VISITS], shards=SHARDS)
    shops = Counter[str]()
    kinds = [True] * good + [False] * malformed
    rng.shuffle(kinds)
    for number, is_good in enumerate(kinds):
        shop = rng.choice(SHOPS)
        bench.table.put_item(
            TableName=bench.table.name,
            Item={
                "pk": {"S": f"SALE#{number}"},
                "sk": {"S": "SALE"},
                "_type": {"S": "sale"},
                "id": {"N": str(number)},
                "shop": {"S": shop},
                # A malformed one lacks only what one of the aggregates needs.
                **({"amount": {"N": "1"}} if is_good else {}),
            },
        )
        shops[shop] += is_good
    begun, before = time.process_time(), (bench.table.usage.writes, bench.table.usage.calls)
    settings = Settings(batch_size=BATCH, window_seconds=60, max_bytes=None, bisect=True)
    mapping = EventSourceMapping(bench.table.stream, bench.clock, settings)
    events, last_good = sum(1 for _ in bench.table.items()), 0
    while deliveries := [found for shard in mapping.shards() if (found := mapping.poll(shard))]:
        for delivery in deliveries:
            report = bench.aggregator.handle(delivery.event)
            assert mapping.settle(delivery, {"state": report.state(delivery.event)}), "an invocation failed"
            if any("amount" in record["dynamodb"].get("NewImage", {}) for record in delivery.records):
                last_good = mapping.deliveries
    assert _sums(bench) == shops, f"seed {SEED}"
    visits = {shop: int(bench.counters.get(VISITS, {"shop": shop}).measures["n"]) for shop in SHOPS}
    assert sum(visits.values()) == events, f"seed {SEED}"
    return _Run(
        shops,
        malformed,
        sum(item.get("state") == {"S": "waiting"} for item in bench.table.items()),
        mapping.deliveries,
        last_good,
        bench.table.usage.writes - before[0],
        bench.table.usage.calls - before[1],
        time.process_time() - begun,
    )


def test_a_cold_start_does_not_read_what_waits() -> None:
    bench = Workbench([SALES])
    bench.counters.accept_many(SALE, [{"id": number, "shop": "a"} for number in range(WAITING)])
    bench.deliver(bench.records())
    bench.counters.accept(SALE, {"id": WAITING, "shop": "a", "amount": 1})
    batch, before = bench.records()[-1:], bench.table.usage.reads
    report = bench.deliver(batch, by=bench.process())
    assert (report.updated, bench.table.usage.reads - before <= MOST_READS) == (1, True)


def _sums(bench: Workbench) -> Counter[str]:
    return +Counter({shop: int(bench.counters.get(SALES, {"shop": shop}).measures["sum"]) for shop in SHOPS})


def test_a_flood_costs_in_proportion_and_stops_nothing(record_property: Callable[[str, object], None]) -> None:
    plain, flooded = _run(EVENTS, 0), _run(EVENTS, EVENTS)
    for name, ratio in (
        ("invocations", flooded.invocations / plain.invocations),
        ("lag", flooded.last_good / plain.last_good),
        ("units", flooded.units / plain.units),
        ("units without the entries", (flooded.units - flooded.quarantined) / plain.units),
        ("cpu", flooded.seconds / plain.seconds),
    ):
        record_property(name, round(ratio, 2))
        print(f"{name}: {ratio:.2f} times those of a run without the flood")
    print(f"without: {plain}\nwith: {flooded}")
    assert flooded.quarantined == EVENTS
    # The stream is twice as long, and quarantine's own records pass through it too, without effect.
    assert flooded.last_good <= 2 * plain.last_good + SHARDS
    assert flooded.invocations <= 4 * plain.invocations
    # An entry is one write; nothing else grows beyond the number of batches.
    assert flooded.units - flooded.quarantined <= 3 * plain.units
