"""Guards of checkpoints and pruning, each in the worst case it is there for; and the cost of a redelivery."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from dynamodb_counters import exactly_once
from dynamodb_counters._assumptions import GUARANTEE
from dynamodb_counters._commit import commit
from dynamodb_counters._commit.checkpoints import Checkpoints, checkpoint_key
from dynamodb_counters._control.run_items import KEPT
from dynamodb_counters._declarations import Aggregate, Count, Event
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CheckpointError
from dynamodb_counters.exactly_once import Watermark, shard_digest
from simulation.aws.sigv4 import LANDING_SECONDS, SKEW_SECONDS
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import HeldClient, HookedClient, failing
from simulation.memory.memory_stream import Record
from simulation.schedules.sandbox import LONGEST_INVOCATION
from simulation.workbench import Workbench

SALE = Event("sale", pk="SHOP#{shop}#{id}", sk="SALE", retention=timedelta(days=300))
SALES = Aggregate("sales", SALE, pk="SALES", sk="ALL", measures={"n": Count()})
EACH = Aggregate("each", SALE, pk="EACH#{id}", sk="ALL", measures={"n": Count()})

MINUTE = 60.0
HOUR = 60 * MINUTE
DAY = 24 * HOUR
RESERVE = 12.0
FRESH = 59.0


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """Three shards, and pruning of whatever may be pruned."""
    monkeypatch.setattr(exactly_once, "PRUNED_EVERY", 0)
    for name, value in (("PRUNED_AT", 1), ("_SPARE_BYTES", 1024)):
        monkeypatch.setattr(commit, name, value)
    return Workbench([SALES], shards=3)


def _sell(bench: Workbench, shard: str, *, shop: str = "x") -> Record:
    """An event whose record is in that shard."""
    while True:
        number = sum(1 for _ in bench.table.items())
        bench.counters.accept(SALE, {"shop": shop, "id": number})
        for other in bench.shards():
            if other != shard and (found := bench.records(other)) and _id(found[-1]) == number:
                break
        else:
            return bench.records(shard)[-1]


def _id(record: Record) -> int:
    image = record["dynamodb"]["NewImage"]
    return int(image["id"]["N"]) if "id" in image else -1


def _count(bench: Workbench) -> int:
    return int(bench.counters.get(SALES, {}).measures["n"])


def _watermarks(bench: Workbench) -> int:
    [item] = [item for item in bench.table.items() if item["pk"] == {"S": "SALES"}]
    return sum(name.startswith("_w") for name in item)


def _counted_and_checkpointed(bench: Workbench, shard: str) -> list[Record]:
    records = [_sell(bench, shard)]
    bench.deliver(records, shard)
    bench.end_window(records, shard)
    return records


def _prune(bench: Workbench, shard: str, *, skew: float = 0.0) -> None:
    """Count something of another shard in a new process, which prunes on that occasion."""
    bench.deliver([_sell(bench, shard)], shard, bench.process(skew=skew))


def test_no_zombie_however_late_meets_a_pruned_watermark(bench: Workbench) -> None:
    """All at its limit: a slow and late writer of the checkpoint with a slow clock, a late zombie, a fast pruner."""
    shard, other, _ = bench.shards()
    start = bench.clock.now

    def at(seconds: float) -> None:
        assert bench.clock.now <= start + seconds
        bench.clock.advance(start + seconds - bench.clock.now)

    batch = [_sell(bench, shard)]
    bench.deliver(batch, shard)
    at(2 * HOUR)  # Since when the batch has been tried again and again, so that it was touched long ago.
    began = 2 * HOUR

    def slow(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == "update_item":
            at(began + LONGEST_INVOCATION - RESERVE)
        return held.hold(name, send, request)

    held = HeldClient(bench.table, "update_item")
    writer = bench.process(HookedClient(bench.table, slow), skew=-SKEW_SECONDS)
    with pytest.raises(Crashed):
        bench.end_window(batch, shard, writer)
    landed = began + LONGEST_INVOCATION - RESERVE + LANDING_SECONDS

    # The zombie's process reads just before the checkpoint lands, and relies on that in its next invocation.
    at(landed - 1)
    late = HeldClient(bench.table, "update_item")
    zombie = bench.process(late)
    with pytest.raises(Crashed):
        bench.deliver(batch, shard, zombie)
    late.forget()
    at(landed)
    held.land()
    at(landed + FRESH - 1)
    with pytest.raises(Crashed):
        bench.deliver(batch, shard, zombie)

    # Its request is sent in its last moments, and lands late.
    at(landed + FRESH + LONGEST_INVOCATION - RESERVE + LANDING_SECONDS)
    _prune(bench, other, skew=SKEW_SECONDS)
    late.land()
    assert _count(bench) == 2

    bench.clock.advance(HOUR)
    _prune(bench, other)
    assert _watermarks(bench) == 1
    late.let_through()
    for process in (zombie, bench.process()):
        bench.deliver(batch, shard, process)
    assert _count(bench) == 3


def test_a_checkpoint_moves_after_the_last_item_is_committed(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynamodb_counters._commit.checkpoints.WORTH_A_WRITE", 1)
    bench.deploy([SALES, EACH])
    shard = bench.shards()[0]
    batch = [_sell(bench, shard), _sell(bench, shard)]

    dying = failing(bench.table, "update_item", lambda request: request["Key"]["pk"]["S"].startswith("EACH"))
    with pytest.raises(Crashed):
        bench.deliver(batch, shard, bench.process(dying))
    bench.deliver(batch, shard)
    assert [int(bench.counters.get(EACH, {"id": _id(record)}).measures["n"]) for record in batch] == [1, 1]
    assert _count(bench) == 2


def test_a_checkpoint_never_moves_back(bench: Workbench) -> None:
    client: Any = bench.table
    table = Table(bench.table.name, client, clock=bench.clock)
    first, second = (Checkpoints(table, table) for _ in range(2))
    shard, numbers = bench.shards()[0], [f"{number:040}" for number in (2, 4)]
    for process in (first, second):
        process.of(shard, numbers[1])
    first.advance(shard, numbers[1], bench.clock.now)
    second.advance(shard, numbers[0], bench.clock.now)
    bench.clock.advance(HOUR)
    assert second.of(shard, "9" * 40).applied_through == numbers[1]


def test_the_end_of_a_window_moves_the_checkpoint_of_a_throttled_table(bench: Workbench) -> None:
    shard, other, _ = bench.shards()
    batch = [_sell(bench, shard)]
    bench.deliver(batch, shard)
    refused = iter(range(3))

    def throttled(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == "update_item" and next(refused, None) is not None:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "UpdateItem")
        return send()

    bench.end_window(batch, shard, bench.process(HookedClient(bench.table, throttled)))
    bench.clock.advance(HOUR)
    _prune(bench, other)
    assert _watermarks(bench) == 1


def test_a_checkpoint_that_has_not_moved_is_looked_up_once_in_five_minutes(bench: Workbench) -> None:
    reads: list[str] = []

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        reads.append(name)
        return send()

    client: Any = HookedClient(bench.table, hook)
    table = Table(bench.table.name, client, clock=bench.clock)
    process = Checkpoints(table, table)
    for _ in range(7):
        assert not process.settled({Watermark("shardId-of-none").name: (1, 0.0)})
        bench.clock.advance(MINUTE)
    assert reads == ["batch_get_item"] * 2


def test_a_busy_shard_settles_although_its_checkpoint_never_stands_still(bench: Workbench) -> None:
    client: Any = bench.table
    table = Table(bench.table.name, client, clock=bench.clock)
    process = Checkpoints(table, table)
    shard = bench.shards()[0]
    watermark, settled = Watermark(shard).name, []
    for number in range(1, 25):
        process.of(shard, f"{number:040}")
        process.advance(shard, f"{number:040}", bench.clock.now + LONGEST_INVOCATION)
        bench.clock.advance(5 * MINUTE)
        settled += [number for first in (1, 24) if process.settled({watermark: (first, 0.0)})]
    # The first was read after 5 minutes, and settles 43 after it was written.
    assert settled == [*range(9, 25)]


def test_a_watermark_that_has_moved_is_not_pruned(bench: Workbench) -> None:
    shard, other, _ = bench.shards()
    _counted_and_checkpointed(bench, shard)
    bench.clock.advance(2 * HOUR)
    later = [_sell(bench, shard)]

    def race(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == "update_item" and request["UpdateExpression"].startswith("REMOVE"):
            bench.deliver(later, shard, bench.process())
        return send()

    bench.deliver([_sell(bench, other)], other, bench.process(HookedClient(bench.table, race)))
    bench.deliver(later, shard, bench.process())
    assert _count(bench) == 3


def test_a_watermark_beyond_its_checkpoint_stays_as_long_as_a_run_may_read_it(bench: Workbench) -> None:
    shard, other, _ = bench.shards()
    bench.deliver([_sell(bench, shard)], shard)
    bench.clock.advance(KEPT)
    _prune(bench, other)
    assert _watermarks(bench) == 2
    bench.clock.advance(DAY + HOUR)
    _prune(bench, other)
    assert _watermarks(bench) == 1


def test_two_shards_of_one_digest_are_an_error(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynamodb_counters._commit.checkpoints.shard_digest", lambda _: "same")
    one, other, _ = bench.shards()
    _counted_and_checkpointed(bench, one)
    with pytest.raises(CheckpointError, match="have the same digest"):
        bench.deliver([_sell(bench, other)], other)


@pytest.mark.parametrize(
    "spoiled",
    [
        {"shard": {"S": ""}},
        {"shard": {"S": "shardId-of-none"}},
        {"shard": {"N": "1"}},
        {"applied_through": {"S": "x"}},
        {"at": {"S": "now"}},
    ],
)
def test_a_checkpoint_that_is_malformed_is_refused_until_it_is_deleted(
    bench: Workbench, spoiled: dict[str, Any]
) -> None:
    shard = bench.shards()[0]
    _counted_and_checkpointed(bench, shard)
    key = checkpoint_key(shard_digest(shard))
    item = bench.table.get_item(TableName=bench.table.name, Key=key)["Item"]
    bench.table.put_item(TableName=bench.table.name, Item={**item, **spoiled})
    bench.clock.advance(HOUR)
    record = _sell(bench, shard)
    with pytest.raises(CheckpointError, match="delete it, then run `counters verify --repair`"):
        bench.deliver([record], shard, bench.process())
    assert _count(bench) == 1
    bench.table.delete_item(TableName=bench.table.name, Key=key)
    bench.deliver([record], shard, bench.process())
    assert _count(bench) == 2


def test_a_record_older_than_the_guarantee_is_not_counted(bench: Workbench) -> None:
    shard = bench.shards()[0]
    _counted_and_checkpointed(bench, shard)
    late = [_sell(bench, shard)]
    bench.clock.advance(GUARANTEE + MINUTE)
    with pytest.raises(CheckpointError, match=r"hours old: expected at most 23\.2; Lambda gives it up"):
        bench.deliver(late, shard, bench.process())
    assert _count(bench) == 1


@pytest.mark.parametrize("warm", [True, False])
def test_a_batch_of_a_hundred_items_again_costs_a_read_at_most(warm: bool) -> None:
    bench = Workbench([EACH])
    bench.counters.accept_many(SALE, [{"shop": "x", "id": number} for number in range(100)])
    batch = bench.records()
    bench.deliver(batch)
    process = bench.aggregator if warm else bench.process()
    for _ in range(3):
        reads, writes = bench.table.usage.reads, bench.table.usage.writes
        report = bench.deliver(batch, by=process)
        assert (report.updated, report.redelivered) == (0, 100)
        assert bench.table.usage.writes == writes
        assert bench.table.usage.reads - reads == (0 if warm else 1)
        warm = True
