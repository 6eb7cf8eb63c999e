"""Requests are refused, for conflicts and throttling: exact, and hardly more writes than without."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations import Aggregate, Count, Event
from dynamodb_counters._table import CONCURRENCY, Table
from dynamodb_counters.errors import CommitError
from simulation.aws.sandboxes import CONCURRENT_EXECUTIONS
from simulation.capacity import World
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.faults.faulty_client import Fault, FaultyClient
from simulation.faults.process import in_disorder
from simulation.night import scaled
from simulation.queue.throttles import Limits
from simulation.workbench import QUARANTINE_SECONDS, Workbench

RECORDS = 512
REFUSED = 0.9
MOST_UNITS = 1.5
MOST_INVOCATIONS = 100
SALE = Event("sale", pk="SALE#{id}", sk="SALE")
EACH = Aggregate("each", SALE, pk="EACH#{id}", sk="ALL", measures={"n": Count()})


@dataclass(frozen=True)
class _Run:
    invocations: int
    failed: int
    units: float
    refused: int


def _run(seed: int, refused: float, timeout: float) -> _Run:
    rng = random.Random(seed)
    bench = Workbench([EACH])
    for number in range(RECORDS):
        assert bench.counters.accept(SALE, {"id": number}).status == "accepted"
    met = 0

    def decide(_: str) -> Fault:
        nonlocal met
        if rng.random() >= refused:
            return Fault.NONE
        met += 1
        return rng.choice((Fault.THROTTLED, Fault.CONFLICT))

    client: Any = FaultyClient(bench.table, decide, rng)
    table = Table(
        bench.table.name,
        client,
        clock=bench.clock,
        # Pauses of requests that are side by side overlap.
        sleep=lambda seconds: bench.clock.advance(seconds / CONCURRENCY),
        jitter=rng.random,
    )
    table.__dict__["side_by_side"] = in_disorder(rng)
    aggregator = Aggregator(table, (EACH,), quarantine_retention_seconds=QUARANTINE_SECONDS)
    before, failed = bench.table.usage.writes, 0
    settings = Settings(batch_size=RECORDS, window_seconds=0, bisect=True)
    mapping = EventSourceMapping(bench.table.stream, bench.clock, settings)
    while delivery := next((found for shard in mapping.shards() if (found := mapping.poll(shard))), None):
        assert mapping.deliveries <= MOST_INVOCATIONS, f"seed {seed} does not end"
        deadline = bench.clock() + timeout
        try:
            aggregator.handle({**delivery.event, "shardId": delivery.shard}, lambda: deadline - bench.clock())  # noqa: B023
        except (CommitError, ClientError):
            failed += 1
            mapping.fail(delivery)
        else:
            mapping.settle(delivery, {})
    # With nothing left to read, the mapping has delivered the aggregator's own writes too.
    counts = [item["n"]["N"] for item in bench.table.items() if item["pk"]["S"].startswith("EACH#")]
    assert counts == ["1"] * RECORDS, f"seed {seed}"
    return _Run(mapping.deliveries, failed, bench.table.usage.writes - before, met)


@pytest.mark.parametrize("timeout", [900.0, 60.0])
@pytest.mark.parametrize("seed", range(scaled(1)))
def test_contention_is_waited_out_not_bisected(
    seed: int, timeout: float, record_property: Callable[[str, object], None]
) -> None:
    undisturbed, contended = _run(seed, 0.0, timeout), _run(seed, REFUSED, timeout)
    ratio = contended.units / undisturbed.units
    record_property("units", round(ratio, 3))
    print(f"seed {seed}, {timeout:.0f} s: {contended}, undisturbed {undisturbed}: {ratio:.3f} times the units")
    assert contended.refused > RECORDS
    assert ratio <= MOST_UNITS


@pytest.mark.parametrize(
    ("groups", "limits", "concurrency"),
    [
        (1, Limits(writes=1.0), CONCURRENT_EXECUTIONS),
        (100, Limits(index_writes=30.0), CONCURRENT_EXECUTIONS),
        (100, Limits(table_writes=40.0), 1),
    ],
    ids=["key", "index", "table"],
)
def test_no_invocation_fails_as_a_limit_of_aws_throttles_it(groups: int, limits: Limits, concurrency: int) -> None:
    world = World(40, groups, limits, concurrency)
    assert world.run(10) > 0
    assert world.failed == 0
