"""Records of the original's stream for a copy, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters._commit.batch import Aggregator, Report
from dynamodb_counters._declarations import Aggregate, Count, Event
from dynamodb_counters._fold.records import padded
from dynamodb_counters._items.watermarks import shard_digest
from dynamodb_counters._recovery.catch_up import CatchUp, has_caught_up
from dynamodb_counters._recovery.catch_up import deliver as redeliver
from dynamodb_counters._recovery.restored_images import key_of
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CheckpointError, CommitError, RestoreError
from simulation.schedules.restored_tables import Copy, Reader, copied
from simulation.workbench import Workbench

VIEW = Event("view", pk="URL#{url}", sk="ID#{id}", retention=timedelta(minutes=40))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
GROUP = ("URL#/", "STATISTICS")


def bench_with(events: int) -> Workbench:
    bench = Workbench([VIEWS])
    for number in range(events):
        bench.counters.accept(VIEW, {"url": "/", "id": number})
        bench.clock.advance(2)
    return bench


def deliver(bench: Workbench) -> None:
    """Count all there is, and move the checkpoint to it."""
    records = bench.records()
    bench.deliver(records)
    bench.end_window(records)


def catch_up(bench: Workbench, copy: Copy, at: float | None = None, **more: Any) -> CatchUp:
    original, own = Reader(bench.table.stream), Reader(copy.stream)
    return CatchUp(table(copy), original, own, "arn", at=at, **more)  # type: ignore[arg-type]


def table(copy: Copy) -> Table:
    return Table(copy.name, copy.client, clock=copy.clock, sleep=copy.clock.advance)


def views(copy: Copy) -> int:
    return int(item(copy, GROUP).get("views", {"N": "0"})["N"])


def item(copy: Copy, key: tuple[str, str]) -> dict[str, Any]:
    found = copy.client.get_item(TableName=copy.name, Key={"pk": {"S": key[0]}, "sk": {"S": key[1]}})
    return dict(found.get("Item", {}))


def test_events_that_were_accepted_but_not_counted_are_counted_once() -> None:
    bench = bench_with(3)
    deliver(bench)
    bench.counters.accept(VIEW, {"url": "/", "id": 3})
    copy = copied(bench.table)
    bench.clock.advance(2)
    bench.counters.accept(VIEW, {"url": "/", "id": 4})
    deliver(bench)
    assert views(copy) == 3
    for _ in range(3):
        work = catch_up(bench, copy)
        work.count(work.find())
        assert views(copy) == 4


def test_a_checkpoint_that_moved_meanwhile_is_not_set_back_again() -> None:
    bench = bench_with(3)
    deliver(bench)
    bench.counters.accept(VIEW, {"url": "/", "id": 3})
    copy, [shard] = copied(bench.table), bench.shards()
    work = catch_up(bench, copy)
    work.count(work.find())
    last = padded(bench.records()[-1]["dynamodb"]["SequenceNumber"])
    ended = {"shardId": shard, "Records": [], "isFinalInvokeForWindow": True}
    aggregator = Aggregator(table(copy), (VIEWS,), quarantine_retention_seconds=1e6)
    assert aggregator.handle({**ended, "state": Report(moved={"applied_through": last}).state({})}).write_units
    bench.clock.advance(3600)
    # Settled, so its watermarks may be pruned.
    group = copy.client.tables[copy.name].partitions[GROUP[0]][GROUP[1]]
    for name in [name for name in group if name.startswith("_w")]:
        del group[name]
    work.count(work.find())
    assert views(copy) == 4


def test_a_spoiled_checkpoint_is_an_error() -> None:
    bench = bench_with(3)
    deliver(bench)
    copy, [shard] = copied(bench.table), bench.shards()
    partition = copy.client.tables[copy.name].partitions[f"CHECKPOINT#{shard_digest(shard)}"]
    partition["CHECKPOINT"]["applied_through"] = {"N": "1"}
    with pytest.raises(RestoreError, match=f"the checkpoint of {shard} cannot be read"):
        catch_up(bench, copy).find()


def test_a_checkpoint_copied_later_than_an_item_hides_nothing() -> None:
    bench = bench_with(3)
    deliver(bench)
    copy = copied(bench.table)
    del copy.client.tables[copy.name].partitions[GROUP[0]][GROUP[1]]
    for _ in range(2):
        work = catch_up(bench, copy)
        work.count(work.find())
        assert views(copy) == 3


def test_a_checkpoint_that_had_settled_stands_for_watermarks_that_were_pruned() -> None:
    bench = bench_with(3)
    deliver(bench)
    bench.clock.advance(3600)
    bench.counters.accept(VIEW, {"url": "/", "id": 3})
    copy = copied(bench.table)
    group = copy.client.tables[copy.name].partitions[GROUP[0]][GROUP[1]]
    [watermark] = [name for name in group if name.startswith("_w")]
    del group[watermark]
    # The original's stream shows its pruning.
    key = {"pk": {"S": GROUP[0]}, "sk": {"S": GROUP[1]}}
    request = {"UpdateExpression": "REMOVE #w", "ExpressionAttributeNames": {"#w": watermark}}
    bench.table.update_item(TableName=bench.table.name, Key=key, **request)
    work = catch_up(bench, copy)
    [found] = work.find().records.values()
    assert [place for _, place in map(key_of, found) if place.startswith("ID#")] == ["ID#3"]
    work.count(work.find())
    assert views(copy) == 4


def test_changes_that_settled_in_a_child_shard_stand_for_those_in_its_parent() -> None:
    bench = bench_with(2)
    [parent] = bench.shards()
    # Counted, while the parent's checkpoint never moves.
    bench.deliver(bench.records(), parent)
    bench.table.stream.split(parent, 1)
    child = bench.shards()[-1]
    key = {"pk": {"S": "URL#/"}, "sk": {"S": "ID#0"}}
    request: dict[str, Any] = {
        "UpdateExpression": "SET note = :note",
        "ExpressionAttributeValues": {":note": {"S": "n"}},
    }
    bench.table.update_item(TableName=bench.table.name, Key=key, **request)
    for number in (2, 3):
        bench.counters.accept(VIEW, {"url": "/", "id": number})
        records = bench.records(child)
        bench.deliver(records, child)
        bench.end_window(records, child)
        bench.clock.advance(3600)
    copy = copied(bench.table)
    work = catch_up(bench, copy)
    work.count(work.find())
    assert views(copy) == 4


def test_a_count_without_its_event_is_no_copy_of_one_moment() -> None:
    bench = bench_with(3)
    deliver(bench)
    copy = copied(bench.table)
    del copy.client.tables[copy.name].partitions[GROUP[0]]["ID#2"]
    with pytest.raises(RestoreError, match="the copy is not of one moment: URL#/ / ID#2"):
        catch_up(bench, copy).find()


def test_a_run_that_was_killed_does_not_take_its_own_checkpoints_for_the_copys() -> None:
    bench = bench_with(0)
    deliver_nothing = Aggregator(bench.store, (VIEWS,), quarantine_retention_seconds=1e6)
    deliver_nothing.handle({})
    for number in range(3):
        bench.counters.accept(VIEW, {"url": "/", "id": number})
    copy, [shard] = copied(bench.table), bench.shards()
    del copy.client.tables[copy.name].partitions[GROUP[0]]["ID#1"]
    aggregator = Aggregator(table(copy), (VIEWS,), quarantine_retention_seconds=1e6)
    [found] = catch_up(bench, copy).find().records.values()
    aggregator.handle({"shardId": shard, "Records": found})
    last = padded(bench.records()[-1]["dynamodb"]["SequenceNumber"])
    ended = {"shardId": shard, "Records": [], "isFinalInvokeForWindow": True}
    assert aggregator.handle({**ended, "state": Report(moved={"applied_through": last}).state({})}).write_units
    work = catch_up(bench, copy)
    work.count(work.find())
    assert views(copy) == 2


def test_an_item_that_was_written_before_the_stream_was_enabled_is_refused() -> None:
    bench = bench_with(3)
    deliver(bench)
    bench.counters.accept(VIEW, {"url": "/", "id": 3})
    copy = copied(bench.table)
    copy.client.tables[copy.name].partitions[GROUP[0]]["ID#3"] |= {"ua": {"S": "curl"}}
    with pytest.raises(RestoreError, match=r"none of the original's images.*: URL#/ / ID#3"):
        catch_up(bench, copy).find()


def test_an_item_that_was_written_since_is_known_by_the_copys_own_stream() -> None:
    bench = bench_with(3)
    deliver(bench)
    bench.counters.accept(VIEW, {"url": "/", "id": 3})
    copy = copied(bench.table)
    copy.client.delete_item(TableName=copy.name, Key={"pk": {"S": "URL#/"}, "sk": {"S": "ID#3"}})
    work = catch_up(bench, copy)
    work.count(work.find())
    assert views(copy) == 4, "its deletion is in the copy's stream, for the next aggregator"


def test_items_that_came_and_expired_need_the_time_of_the_copy() -> None:
    bench = bench_with(0)
    bench.counters.accept(VIEW, {"url": "/other", "id": 0})
    deliver(bench)
    bench.clock.advance(60)
    before = copied(bench.table)
    made_before = bench.clock()
    bench.clock.advance(60)
    bench.counters.accept(VIEW, {"url": "/", "id": 1})
    bench.clock.advance(3600)
    bench.table.expire()
    bench.clock.advance(60)
    after = copied(bench.table)
    made_after = bench.clock()
    del after.client.tables[after.name].partitions["URL#/other"]
    after.client.tables[after.name].partitions["URL#/other"] = before.client.tables[before.name].partitions[
        "URL#/other"
    ]
    for copy, at, counted in ((before, made_before, 0), (after, made_after, 1)):
        with pytest.raises(RestoreError, match="pass --at"):
            catch_up(bench, copy).find()
        work = catch_up(bench, copy, at)
        work.count(work.find())
        assert views(copy) == counted


def test_each_record_is_counted_by_the_declarations_of_its_time() -> None:
    bench = bench_with(1)
    deliver(bench)
    other = Aggregate("other", VIEW, pk="OTHER#{url}", sk="STATISTICS", measures={"views": Count()})
    bench.counters.accept(VIEW, {"url": "/", "id": 1})
    newer = Aggregator(bench.store, (VIEWS, other), quarantine_retention_seconds=1e6)
    assert newer.handle({"shardId": bench.shards()[0], "Records": bench.records()}).takeover
    bench.counters.accept(VIEW, {"url": "/", "id": 2})  # The takeover holds for what is created later.
    bench.clock.advance(7200)
    bench.counters.accept(VIEW, {"url": "/", "id": 3})
    copy = copied(bench.table)
    work = catch_up(bench, copy)
    work.count(work.find())
    assert (views(copy), item(copy, ("OTHER#/", "STATISTICS"))["views"]) == (4, {"N": "1"})


def test_afterwards_another_aggregator_may_take_over() -> None:
    bench = bench_with(1)
    Aggregator(bench.store, (VIEWS,), quarantine_retention_seconds=1e6, name="Old/Aggregator").handle(
        {"shardId": bench.shards()[0], "Records": bench.records()}
    )
    copy = copied(bench.table)
    other = Aggregate("other", VIEW, pk="OTHER#{url}", sk="STATISTICS", measures={"views": Count()})
    new = Aggregator(table(copy), (VIEWS, other), quarantine_retention_seconds=1e6, name="New/Aggregator")
    record = bench.records()[0]
    with pytest.raises(CheckpointError):
        new.handle({"shardId": "shardId-1", "Records": [record]})
    work = catch_up(bench, copy)
    assert not has_caught_up(table(copy), "arn")
    work.count(work.find())
    assert has_caught_up(table(copy), "arn")
    assert new.handle({"shardId": "shardId-1", "Records": [record]}).takeover


def test_a_history_that_is_missing_or_unreadable_is_an_error() -> None:
    copy = copied(bench_with(1).table)
    with pytest.raises(RestoreError, match="no history of deployments"):
        catch_up(bench_with(1), copy)
    bench = bench_with(1)
    deliver(bench)
    copy = copied(bench.table)
    for sort_key, kept in copy.client.tables[copy.name].partitions["CHECKPOINT#"].items():
        if sort_key.startswith("DEPLOYMENT#"):
            kept["version"] = {"N": "999"}
    with pytest.raises(RestoreError, match="cannot read the last deployment"):
        catch_up(bench, copy)


def test_little_is_read_of_what_was_created_long_after_the_copy_was_made() -> None:
    bench = bench_with(3)
    copy, made = copied(bench.table), bench.clock()
    bench.clock.advance(600)
    for number in range(3, 203):
        bench.counters.accept(VIEW, {"url": "/", "id": number})
    assert catch_up(bench, copy, made, declarations=(VIEWS,)).find().read == 103


def test_an_item_of_long_after_the_copy_may_lack_its_first_records() -> None:
    bench = bench_with(3)
    for _ in range(2):
        # Once more, so that the first records have settled.
        deliver(bench)
        bench.clock.advance(3600)
    copy, at = copied(bench.table), bench.clock()
    bench.clock.advance(3600)
    for number in range(150):
        bench.counters.accept(VIEW, {"url": f"/{number}", "id": 1})
    bench.counters.retract(VIEW, {"url": "/", "id": 0})
    bench.table.stream.split(bench.shards()[0], 1)
    # The parent's records of both lie beyond those that are read of it.
    bench.counters.retract(VIEW, {"url": "/149", "id": 1})
    bench.clock.advance(1)
    bench.counters.accept(VIEW, {"url": "/", "id": 0})
    work = catch_up(bench, copy, at)
    work.count(work.find())
    assert views(copy) == 3


def test_a_time_that_is_too_early_is_refused() -> None:
    bench = bench_with(3)
    made = bench.clock()
    bench.clock.advance(600)
    deliver(bench)
    with pytest.raises(RestoreError, match="made later than --at"):
        catch_up(bench, copied(bench.table), made - 600).find()


def test_streams_whose_shards_share_a_name_are_refused() -> None:
    bench = bench_with(1)
    copy = copied(bench.table)
    copy.stream = bench.table.stream
    with pytest.raises(RestoreError, match="share a shard's name"):
        catch_up(bench, copy, declarations=(VIEWS,)).find()


def test_a_batch_is_tried_again_while_the_table_refuses_a_part_of_it() -> None:
    copy = copied(bench_with(1).table)
    refusals, tried = [CommitError([]), CommitError([])], list[dict[str, Any]]()

    class Refusing:
        def handle(self, event: dict[str, Any], *, given_up: bool) -> Report:
            assert given_up
            tried.append(event)
            if refusals:
                raise refusals.pop()
            return Report(updated=1)

    aggregator: Any = Refusing()
    assert redeliver(aggregator, table(copy), "shard-1", [{"eventID": "1"}], given_up=True).updated == 1
    assert tried == [{"shardId": "shard-1", "Records": [{"eventID": "1"}]}] * 3
    refusals = [CommitError([])] * 1000
    with pytest.raises(CommitError):
        redeliver(aggregator, table(copy), "shard-1", [], given_up=True)
