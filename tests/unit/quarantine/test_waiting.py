"""Entries that wait for repair are counted, at a price that is bounded, and redriven once."""

from __future__ import annotations

from typing import Any, cast

import pytest

from dynamodb_counters._fold.fold import Unfoldable
from dynamodb_counters._quarantine.quarantine import (
    MOST_BYTES,
    STATE,
    Quarantine,
    Waiting,
    list_quarantined,
    redrive,
    waiting_in_bucket,
    waiting_in_quarantine,
)
from dynamodb_counters._table import Table
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable
from tests.unit.quarantine.buckets import Bucket

DAY = 86_400.0
KEPT = 90 * DAY


@pytest.fixture
def memory() -> MemoryTable:
    return MemoryTable(VirtualClock())


@pytest.fixture
def table(memory: MemoryTable) -> Table:
    return Table(memory.name, cast("Any", memory), clock=memory._clock)


def quarantine(table: Table, number: int, *, size: int = 10, kept: float = KEPT) -> None:
    record = {
        "eventName": "INSERT",
        "dynamodb": {
            "SequenceNumber": str(10**21 + number),
            "ApproximateCreationDateTime": table.clock(),
            "NewImage": {"pk": {"S": "p" * size}},
        },
    }
    image = Unfoldable(str(10**21 + number), "NewImage", record, "malformed")
    Quarantine(table, kept).keep("shard-1", [image])


def test_waiting_entries_are_counted_until_they_are_redriven(table: Table) -> None:
    for number in range(200):
        quarantine(table, number)
        cast("VirtualClock", table.clock).advance(60)
    assert waiting_in_quarantine(table, KEPT) == Waiting(200, 200 * 60)
    for entry in list(list_quarantined(table, redriven=False)):
        redrive(table, entry)
    assert waiting_in_quarantine(table, KEPT) == Waiting()


def test_the_age_is_the_records_however_long_it_is_kept(table: Table) -> None:
    quarantine(table, 1, kept=3 * DAY)
    cast("VirtualClock", table.clock).advance(1.5 * DAY)
    assert waiting_in_quarantine(table, KEPT) == Waiting(1, 1.5 * DAY)
    cast("VirtualClock", table.clock).advance(DAY)
    assert waiting_in_quarantine(table, KEPT) == Waiting(1, 2.5 * DAY)
    cast("VirtualClock", table.clock).advance(DAY)
    assert waiting_in_quarantine(table, KEPT) == Waiting()


def test_the_expiry_gives_the_age_of_an_entry_without_a_record(table: Table, memory: MemoryTable) -> None:
    quarantine(table, 1)
    [item] = memory.items()
    spoiled = {**item, "record": {"S": "no JSON"}}
    memory.put_item(TableName=memory.name, Item=spoiled)
    cast("VirtualClock", table.clock).advance(DAY)
    assert waiting_in_quarantine(table, KEPT) == Waiting(1, DAY)


@pytest.mark.parametrize("size", [10, 25_000])
def test_a_flood_costs_no_more_than_stated(table: Table, memory: MemoryTable, size: int) -> None:
    for number in range(6000):
        quarantine(table, number, size=size)
    assert STATE in next(memory.items())
    memory.usage.reads = 0.0
    found = waiting_in_quarantine(table, KEPT)
    # The last page may be a whole megabyte.
    assert memory.usage.reads <= MOST_BYTES / 8192 + 128 + 32
    assert 0 < found.count <= 6000
    assert size > 10 or found.count == 6000


def test_the_bucket_counts_lambdas_objects() -> None:
    assert waiting_in_bucket(Bucket(1e9), "bucket", 1e9) == Waiting(2, 7200)
    assert waiting_in_bucket(Bucket(1e9, {}), "bucket", 1e9) == Waiting()
