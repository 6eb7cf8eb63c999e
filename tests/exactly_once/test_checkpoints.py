"""Guards of checkpoints and pruning, each in the worst case it is there for; and the cost of a redelivery."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from counters_lambda.counting import commit
from counters_lambda.counting.commit import Checkpoints, checkpoint_key
from counters_lambda.counting.run_logs import RUN_RETENTION
from dynamodb_counters import exactly_once
from dynamodb_counters._assumptions import GUARANTEE
from dynamodb_counters._declarations import Aggregate, Count, Event
from dynamodb_counters.errors import CheckpointError
from dynamodb_counters.exactly_once import Watermark, shard_digest
from simulation.aws.sigv4 import LANDING_SECONDS, SKEW_SECONDS
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import FrozenThreads, HeldClient, HookedClient, failing
from simulation.memory.client_errors import failure
from simulation.memory.memory_stream import Record
from simulation.pairs.function import LONGEST_INVOCATION
from simulation.world import World

SALE = Event("sale", pk="SHOP#{shop}#{id}", sk="SALE", retention=timedelta(days=300))
SALES = Aggregate("sales", SALE, pk="SALES", sk="ALL", measures={"n": Count()})
TAGGED = Aggregate("tagged", SALE, pk="TAG#{tags[]}", sk="ALL", measures={"n": Count()})
TAGS = [f"tag-{number}" for number in range(40)]
EACH = Aggregate("each", SALE, pk="EACH#{id}", sk="ALL", measures={"n": Count()})

MINUTE = 60.0
HOUR = 60 * MINUTE
DAY = 24 * HOUR
RESERVE = 12.0
FRESH = 59.0


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Three shards, and pruning of whatever may be pruned."""
    monkeypatch.setattr(exactly_once, "PRUNED_EVERY", 0)
    for name, value in (("PRUNED_AT", 1), ("_SPARE_BYTES", 1024)):
        monkeypatch.setattr(commit, name, value)
    return World(SALES, shards=3)


def _sell(world: World, shard: str, **more: Any) -> Record:
    """Return an event whose record is in that shard."""
    while True:
        number = sum(1 for _ in world.table.items())
        world.counters.accept(SALE, {"shop": "x", "id": number, **more})
        for other in world.shards():
            if other != shard and (records := world.records(other)) and _id(records[-1]) == number:
                break
        else:
            return world.records(shard)[-1]


def _id(record: Record) -> int:
    image = record["dynamodb"]["NewImage"]
    return int(image["id"]["N"]) if "id" in image else -1


def _count(world: World) -> int:
    return int(world.counters.get(SALES, {})["n"])


def _watermarks(world: World) -> int:
    [item] = world.items("sales")
    return sum(name.startswith("_w") for name in item)


def _counted_and_checkpointed(world: World, shard: str) -> list[Record]:
    records = [_sell(world, shard)]
    world.deliver(records, shard)
    world.end_window(records, shard)
    return records


def _prune(world: World, shard: str, *, skew: float = 0.0) -> None:
    """Count something of another shard in a new process, which prunes on that occasion."""
    world.deliver([_sell(world, shard)], shard, world.process(skew=skew))


def test_no_zombie_however_late_meets_a_pruned_watermark(world: World) -> None:
    """All at its limit: a slow and late writer of the checkpoint with a slow clock, a late zombie, a fast pruner."""
    shard, other, _ = world.shards()
    start = world.clock.now

    def at(seconds: float) -> None:
        assert world.clock.now <= start + seconds
        world.clock.advance(start + seconds - world.clock.now)

    batch = [_sell(world, shard)]
    world.deliver(batch, shard)
    at(2 * HOUR)  # Since when the batch has been tried again and again, so that it was touched long ago.
    began = 2 * HOUR

    def slow(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == "update_item":
            at(began + LONGEST_INVOCATION - RESERVE)
        return client.hold(name, send, request)

    client = HeldClient(world.table, "update_item")
    with pytest.raises(Crashed):
        world.end_window(batch, shard, world.process(HookedClient(world.table, slow), skew=-SKEW_SECONDS))
    landed = began + LONGEST_INVOCATION - RESERVE + LANDING_SECONDS

    # The zombie's process reads just before the checkpoint lands, and relies on that in its next invocation.
    at(landed - 1)
    late = HeldClient(world.table, "update_item")
    zombie = world.process(late)
    with pytest.raises(Crashed):
        world.deliver(batch, shard, zombie)
    late.forget()
    at(landed)
    client.land()
    at(landed + FRESH - 1)
    with pytest.raises(Crashed):
        world.deliver(batch, shard, zombie)

    # Its request is sent in its last moments, and lands late.
    at(landed + FRESH + LONGEST_INVOCATION - RESERVE + LANDING_SECONDS)
    _prune(world, other, skew=SKEW_SECONDS)
    late.land()
    assert _count(world) == 2

    world.clock.advance(HOUR)
    _prune(world, other)
    assert _watermarks(world) == 1
    late.let_through()
    for process in (zombie, world.process()):
        world.deliver(batch, shard, process)
    assert _count(world) == 3


def test_a_checkpoint_moves_after_the_last_item_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counters_lambda.counting.commit.WORTH_A_WRITE", 1)
    world = World(SALES, EACH, shards=3)
    shard = world.shards()[0]
    batch = [_sell(world, shard), _sell(world, shard)]
    dying = failing(world.table, "update_item", lambda request: request["Key"]["pk"]["S"].startswith("EACH"))
    with pytest.raises(Crashed):
        world.deliver(batch, shard, world.process(dying))
    world.deliver(batch, shard)
    assert [int(world.counters.get(EACH, {"id": _id(record)}).measures["n"]) for record in batch] == [1, 1]
    assert _count(world) == 2


def test_a_checkpoint_never_moves_back(world: World) -> None:
    first, second = (Checkpoints(world.store, world.store) for _ in range(2))
    shard, numbers = world.shards()[0], [f"{number:040}" for number in (2, 4)]
    for process in (first, second):
        process.of(shard, numbers[1])
    first.advance(shard, numbers[1], world.clock.now)
    second.advance(shard, numbers[0], world.clock.now)
    world.clock.advance(HOUR)
    assert second.of(shard, "9" * 40).applied_through == numbers[1]


def test_the_end_of_a_window_moves_the_checkpoint_of_a_throttled_table(world: World) -> None:
    shard, other, _ = world.shards()
    batch = [_sell(world, shard)]
    world.deliver(batch, shard)
    refused = iter(range(3))

    def throttled(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == "update_item" and next(refused, None) is not None:
            raise failure("UpdateItem", "ThrottlingException")
        return send()

    world.end_window(batch, shard, world.process(HookedClient(world.table, throttled)))
    world.clock.advance(HOUR)
    _prune(world, other)
    assert _watermarks(world) == 1


def test_a_checkpoint_that_has_not_moved_is_looked_up_once_in_five_minutes(world: World) -> None:
    reads: list[str] = []

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        reads.append(name)
        return send()

    table = world.reached(HookedClient(world.table, hook))
    process = Checkpoints(table, table)
    for _ in range(7):
        assert not process.settled({Watermark("shardId-of-none").name: (1, 0.0)})
        world.clock.advance(MINUTE)
    assert reads == ["batch_get_item"] * 2


def test_a_busy_shard_settles_although_its_checkpoint_never_stands_still(world: World) -> None:
    process = Checkpoints(world.store, world.store)
    shard = world.shards()[0]
    watermark, settled = Watermark(shard).name, []
    for number in range(1, 25):
        process.of(shard, f"{number:040}")
        process.advance(shard, f"{number:040}", world.clock.now + LONGEST_INVOCATION)
        world.clock.advance(5 * MINUTE)
        settled += [number for first in (1, 24) if process.settled({watermark: (first, 0.0)})]
    # The first was read after 5 minutes, and settles 43 after it was written.
    assert settled == [*range(9, 25)]


def test_a_watermark_that_has_moved_is_not_pruned(world: World) -> None:
    shard, other, _ = world.shards()
    _counted_and_checkpointed(world, shard)
    world.clock.advance(2 * HOUR)
    later = [_sell(world, shard)]

    def race(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == "update_item" and request["UpdateExpression"].startswith("REMOVE"):
            world.deliver(later, shard, world.process())
        return send()

    world.deliver([_sell(world, other)], other, world.process(HookedClient(world.table, race)))
    world.deliver(later, shard, world.process())
    assert _count(world) == 3


def test_a_watermark_beyond_its_checkpoint_stays_as_long_as_a_run_may_read_it(world: World) -> None:
    shard, other, _ = world.shards()
    world.deliver([_sell(world, shard)], shard)
    world.clock.advance(RUN_RETENTION)
    _prune(world, other)
    assert _watermarks(world) == 2
    world.clock.advance(DAY + HOUR)
    _prune(world, other)
    assert _watermarks(world) == 1


def test_two_shards_of_one_digest_are_an_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counters_lambda.counting.commit.shard_digest", lambda _: "same")
    shard, other, _ = world.shards()
    _counted_and_checkpointed(world, shard)
    with pytest.raises(CheckpointError, match="have the same digest"):
        world.deliver([_sell(world, other)], other)


SPOILED = [*({"shard": value} for value in ({"S": ""}, {"S": "shardId-of-none"}, {"N": "1"}))]
SPOILED += [{"applied_through": {"S": "x"}}, {"at": {"S": "now"}}]


@pytest.mark.parametrize("spoiled", SPOILED)
def test_a_checkpoint_that_is_malformed_is_refused_until_it_is_deleted(world: World, spoiled: dict[str, Any]) -> None:
    shard = world.shards()[0]
    _counted_and_checkpointed(world, shard)
    key = checkpoint_key(shard_digest(shard))
    world.write({**(world.item(key) or {}), **spoiled})
    world.clock.advance(HOUR)
    record = _sell(world, shard)
    with pytest.raises(CheckpointError, match="delete it, then run `counters verify --repair`"):
        world.deliver([record], shard, world.process())
    assert _count(world) == 1
    world.delete(key)
    world.deliver([record], shard, world.process())
    assert _count(world) == 2


def test_a_record_older_than_the_guarantee_is_not_counted(world: World) -> None:
    shard = world.shards()[0]
    _counted_and_checkpointed(world, shard)
    late = [_sell(world, shard)]
    world.clock.advance(GUARANTEE + MINUTE)
    with pytest.raises(CheckpointError, match=r"hours old: expected at most 23\.2; Lambda gives it up"):
        world.deliver(late, shard, world.process())
    assert _count(world) == 1


@pytest.mark.parametrize("warm", [True, False])
def test_a_batch_of_a_hundred_items_again_costs_a_read_at_most(warm: bool) -> None:
    world = World(EACH)
    batch = world.accept(SALE, *({"shop": "x", "id": number} for number in range(100)))
    world.deliver(batch)
    process = world.aggregator if warm else world.process()
    for _ in range(3):
        reads, writes = world.table.usage.reads, world.table.usage.writes
        report = world.deliver(batch, by=process)
        assert (report.updated, report.redelivered) == (0, 100)
        assert world.table.usage.writes == writes
        assert world.table.usage.reads - reads == (0 if warm else 1)
        warm = True


@pytest.mark.parametrize("error", [KeyError, MemoryError])
@pytest.mark.usefixtures("world")
def test_no_thread_outlives_an_invocation_that_fails(error: type[Exception]) -> None:
    """Lambda freezes its threads with it, and thaws them in one that comes much later."""
    world = World(TAGGED, shards=2)
    shard, other = world.shards()
    batch = [_sell(world, shard, tags=TAGS)]
    threads = FrozenThreads("update_item", error)
    process = world.process(HookedClient(world.table, threads))

    def invoke() -> None:
        with suppress(error):
            world.deliver(batch, shard, process)

    invocation = threading.Thread(target=invoke)
    invocation.start()
    # One that ends now leaves its threads behind; one that waits for them does not end before they do.
    invocation.join(0.3)
    if invocation.is_alive():
        threads.thaw()
        invocation.join(10)
    # The batch is counted by its next delivery; once its checkpoint has settled, its watermarks are pruned.
    world.deliver(batch, shard)
    world.end_window(batch, shard)
    world.clock.advance(HOUR)
    world.deliver([_sell(world, other, tags=TAGS)], other)
    threads.thaw()
    process._committer._table.pool.shutdown()
    groups = world.counters.get_many([(TAGGED, {"tags[]": tag}) for tag in TAGS])
    assert sum(int(group.measures["n"]) for group in groups) == 2 * len(TAGS)
