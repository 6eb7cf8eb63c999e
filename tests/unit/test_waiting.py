"""Entries that wait for repair are counted, at a price that is bounded, and redriven once."""

from __future__ import annotations

import pytest

from dynamodb_counters._fold.fold import InvalidImage
from dynamodb_counters._quarantine import (
    MOST_BYTES,
    STATE,
    Quarantine,
    Waiting,
    list_quarantined,
    redrive,
    waiting_in_bucket,
    waiting_in_quarantine,
)
from simulation.world import World
from tests.unit.failure_bucket import Bucket

DAY = 86_400.0
KEPT = 90 * DAY


@pytest.fixture
def world() -> World:
    return World(founds=False)


def quarantine(world: World, number: int, *, size: int = 10, retention: float = KEPT) -> None:
    record = {
        "eventName": "INSERT",
        "dynamodb": {
            "SequenceNumber": str(10**21 + number),
            "ApproximateCreationDateTime": world.clock(),
            "NewImage": {"pk": {"S": "p" * size}},
        },
    }
    image = InvalidImage(str(10**21 + number), "NewImage", record, "malformed")
    Quarantine(world.store, retention).keep("shard-1", [image])


def test_waiting_entries_are_counted_until_they_are_redriven(world: World) -> None:
    for number in range(200):
        quarantine(world, number)
        world.clock.advance(60)
    assert waiting_in_quarantine(world.store, KEPT) == Waiting(200, 200 * 60)
    for entry in list(list_quarantined(world.store, redriven=False)):
        redrive(world.store, entry)
    assert waiting_in_quarantine(world.store, KEPT) == Waiting()


def test_the_age_is_the_records_however_long_it_is_kept(world: World) -> None:
    quarantine(world, 1, retention=3 * DAY)
    for days, waiting in ((1.5, Waiting(1, 1.5 * DAY)), (1, Waiting(1, 2.5 * DAY)), (1, Waiting())):
        world.clock.advance(days * DAY)
        assert waiting_in_quarantine(world.store, KEPT) == waiting


def test_the_expiry_gives_the_age_of_an_entry_without_a_record(world: World) -> None:
    quarantine(world, 1)
    [item] = world.table.items()
    spoiled = {**item, "record": {"S": "no JSON"}}
    world.write(spoiled)
    world.clock.advance(DAY)
    assert waiting_in_quarantine(world.store, KEPT) == Waiting(1, DAY)


@pytest.mark.parametrize("size", [10, 25_000])
def test_a_flood_costs_no_more_than_stated(world: World, size: int) -> None:
    for number in range(6000):
        quarantine(world, number, size=size)
    assert STATE in next(world.table.items())
    world.table.usage.reads = 0.0
    waiting = waiting_in_quarantine(world.store, KEPT)
    # The last page may be a whole megabyte.
    assert world.table.usage.reads <= MOST_BYTES / 8192 + 128 + 32
    assert 0 < waiting.count <= 6000
    assert size > 10 or waiting.count == 6000


def test_the_bucket_counts_lambdas_objects() -> None:
    assert waiting_in_bucket(Bucket(1e9), "bucket", 1e9) == Waiting(2, 7200)
    assert waiting_in_bucket(Bucket(1e9, {}), "bucket", 1e9) == Waiting()
