"""Batches that Lambda gave up on count exactly once, however much of them had counted, and whatever came after."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from dynamodb_counters._assumptions import GIVEN_UP_AFTER, LONGEST_INVOCATION, MOST_BOOKS, SKEW
from dynamodb_counters._commit import checkpoints
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._declarations import Aggregate, Count, Event
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._recovery.redrive_bucket import OnFailureBucket, RedrivenBatch, redrive_bucket
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import DAY, HOUR, MINUTE
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import HeldClient, HookedClient, failing
from simulation.memory.client_errors import failure
from simulation.memory.memory_stream import Record
from simulation.workbench import Workbench
from tests.unit.cli.in_process import Done, run

SALE = Event("sale", pk="SHOP#{shop}#{id}", sk="SALE", retention=timedelta(days=300))
SALES = Aggregate("sales", SALE, pk="SALES", sk="ALL", measures={"n": Count()})
SHOPS = Aggregate("shops", SALE, pk="SHOPS", sk="SHOP#{shop}", measures={"n": Count()})
BUCKET = "on-failure"


@pytest.fixture
def bench() -> Workbench:
    """A table whose names are registered."""
    bench = Workbench([SALES, SHOPS])
    bench.aggregator.handle({})
    return bench


@pytest.fixture(scope="module")
def moto_s3() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("s3", region_name="us-east-1")


@pytest.fixture
def s3(moto_s3: Any) -> Iterator[Any]:
    moto_s3.create_bucket(Bucket=BUCKET)
    yield moto_s3
    boto3.resource("s3", region_name="us-east-1").Bucket(BUCKET).objects.all().delete()
    moto_s3.delete_bucket(Bucket=BUCKET)


def _sell(bench: Workbench, shop: str = "x") -> Record:
    bench.counters.accept(SALE, {"shop": shop, "id": sum(1 for _ in bench.table.items())})
    return bench.records()[-1]


def _counts(bench: Workbench, shop: str = "x") -> tuple[int, int]:
    total, of_shop = bench.counters.get_many([(SALES, {}), (SHOPS, {"shop": shop})])
    return total.measures["n"], of_shop.measures["n"]


def _is_other(key: str, pk: str) -> bool:
    return key != pk and not key.startswith("CHECKPOINT")


def _count_only(bench: Workbench, records: list[Record], pk: str) -> None:
    """An invocation that dies when it has updated one item."""
    dying = failing(bench.table, "update_item", lambda update: _is_other(update["Key"]["pk"]["S"], pk))
    with pytest.raises(Crashed):
        bench.deliver(records, by=bench.process(dying))


def _put(
    s3: Any, bench: Workbench, records: list[Record], *, table: str = "", shard: str = "", age: float = GIVEN_UP_AFTER
) -> str:
    """Write what Lambda writes when it gives up on a batch of some age."""
    shard = shard or bench.shards()[0]
    first = records[0]["dynamodb"]["SequenceNumber"]
    key = f"aws/lambda/7a2b/{shard}/2026/11/22/2026-11-22T10.00.00-{first}-{len(records)}"
    document = {
        "requestContext": {"condition": "RecordAgeExceeded"},
        "timestamp": f"{datetime.fromtimestamp(_created(records[0]) + age, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z",
        "DDBStreamBatchInfo": {
            "shardId": shard,
            "startSequenceNumber": first,
            "streamArn": f"arn:aws:dynamodb:us-east-1:123456789012:table/{table or bench.table.name}/stream/2026",
        },
        "payload": json.dumps({"Records": records, "shardId": shard}),
    }
    s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(document).encode())
    return key


def _redrive(s3: Any, bench: Workbench, client: Any = None, **options: Any) -> list[RedrivenBatch]:
    return list(redrive_bucket(_table(bench, client), OnFailureBucket(s3, BUCKET), **options))


def _table(bench: Workbench, client: Any = None) -> Table:
    reached: Any = client or bench.table
    return Table(bench.table.name, reached, clock=bench.clock, sleep=bench.clock.advance)


def test_a_batch_that_was_counted_in_part_and_overtaken_is_counted_once(bench: Workbench, s3: Any) -> None:
    lost = _sell(bench)
    _count_only(bench, [lost], "SALES")
    bench.clock.advance(GIVEN_UP_AFTER + MINUTE)
    key = _put(s3, bench, [lost])
    bench.deliver([_sell(bench)])
    assert _counts(bench) == (2, 1)

    assert _redrive(s3, bench) == [RedrivenBatch(key, 1, 1, 0)]
    assert _counts(bench) == (2, 2)
    assert _redrive(s3, bench) == []


def test_a_batch_that_no_invocation_could_try_is_counted_once(bench: Workbench, s3: Any) -> None:
    lost = _sell(bench)
    bench.clock.advance(GIVEN_UP_AFTER + MINUTE)
    _put(s3, bench, [lost])
    bench.deliver([_sell(bench)])
    for _ in range(2):
        _redrive(s3, bench, keep=True)
        assert _counts(bench) == (2, 2)


def test_records_counted_together_with_a_given_up_record_are_not_counted_again(bench: Workbench, s3: Any) -> None:
    lost = _sell(bench)
    bench.clock.advance(HOUR)
    batch = [lost, _sell(bench)]
    _count_only(bench, batch, "SALES")
    bench.clock.advance(GIVEN_UP_AFTER - HOUR + MINUTE)
    _put(s3, bench, [lost])
    bench.deliver(batch[1:])
    assert _counts(bench) == (2, 1)
    assert [(one.skipped, one.problem) for one in _redrive(s3, bench)] == [(0, None)]
    assert _counts(bench) == (2, 2)


@pytest.mark.parametrize("is_covered", [False, True], ids=["items", "checkpoint"])
def test_records_that_a_redrive_skips_are_reported_and_their_object_stays(
    bench: Workbench, s3: Any, *, is_covered: bool
) -> None:
    """Lambda gave up after an hour: no book opens, and later records are counted in the same one."""
    bench.deliver([_sell(bench, "w")])
    lost = [_sell(bench, "x"), _sell(bench, "x"), _sell(bench, "y")]
    bench.clock.advance(HOUR)
    key = _put(s3, bench, lost, age=HOUR)
    later = [_sell(bench, "x")]
    bench.deliver(later)
    if is_covered:
        bench.end_window(later)
    other = _put(s3, bench, [_sell(bench, "z")], age=HOUR)

    done = _command(s3, bench, BUCKET, "--yes", "--json")
    found = {one["key"]: one for one in done.document["objects"]}
    assert done.code == 1
    assert (found[key]["records"], found[key]["skipped"]) == (3, 3)
    assert "3 of them skipped" in found[key]["problem"]
    assert "verify what they count, then delete the object" in found[key]["problem"]
    # Records that can be counted are, and nothing behind them waits.
    assert [_counts(bench, shop)[1] for shop in "xyz"] == [1, 0 if is_covered else 1, 1]
    assert found[other]["problem"] is None
    again = _redrive(s3, bench)
    assert [(one.key, one.updated, one.skipped) for one in again] == [(key, 0, 3)]


def test_a_batch_is_counted_weeks_later(bench: Workbench, s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynamodb_counters._commit.commit.PRUNED_AT", 1)
    monkeypatch.setattr("dynamodb_counters._commit.commit._SPARE_BYTES", 1024)
    lost = _sell(bench)
    _count_only(bench, [lost], "SALES")
    bench.clock.advance(GIVEN_UP_AFTER + MINUTE)
    _put(s3, bench, [lost])
    bench.deliver([_sell(bench)])
    for _ in range(3):
        bench.clock.advance(10 * DAY)
        # An update by another record prunes what it may.
        bench.table.stream.split(bench.shards()[-1])
        bench.counters.accept(SALE, {"shop": "y", "id": f"n{bench.clock.now}"})
        for shard in bench.shards()[-2:]:
            if records := [one for one in bench.records(shard) if _created(one) > bench.clock.now - HOUR]:
                bench.deliver(records, shard, bench.process())
    total, of_shop = _counts(bench)
    _redrive(s3, bench)
    assert _counts(bench) == (total, of_shop + 1)


def _created(record: Record) -> float:
    return float(record["dynamodb"]["ApproximateCreationDateTime"])


@pytest.mark.parametrize(("left", "names"), [(SKEW + MINUTE, 1), (MINUTE, 2)])
def test_a_book_opens_before_lambda_gives_up(bench: Workbench, left: float, names: int) -> None:
    """Clocks differ: a book that opens too early costs a watermark, one that opens too late a count."""
    bench.deliver([_sell(bench)])
    bench.clock.advance(GIVEN_UP_AFTER - left)
    bench.deliver([_sell(bench)], by=bench.process())
    item = bench.table.get_item(TableName=bench.table.name, Key={"pk": {"S": "SALES"}, "sk": {"S": "ALL"}})["Item"]
    assert sum(name.startswith("_w") for name in item) == names


def test_a_book_waits_for_an_invocation_that_may_still_count_its_records(bench: Workbench, s3: Any) -> None:
    lost, kept = _sell(bench), _sell(bench)
    bench.clock.advance(GIVEN_UP_AFTER - SKEW - MINUTE)
    held = HeldClient(bench.table, "")

    def hold_the_total(name: str, send: Any, request: dict[str, Any]) -> Any:
        if name == "update_item" and request["Key"]["pk"] == {"S": "SALES"}:
            return HeldClient.hold(held, held._operation, send, request)
        return send()

    with pytest.raises(Crashed):
        bench.deliver([lost, kept], by=bench.process(HookedClient(bench.table, hold_the_total)))
    bench.clock.advance(SKEW + 2 * MINUTE)
    _put(s3, bench, [lost])
    with pytest.raises(TimeoutError, match="may still count"):
        bench.deliver([kept], by=bench.process())
    held.land()
    bench.clock.advance(LONGEST_INVOCATION + SKEW)
    bench.deliver([kept], by=bench.process())
    _redrive(s3, bench)
    assert _counts(bench) == (2, 2)


def test_a_book_whose_opener_died_begins_where_it_was_opened(bench: Workbench, s3: Any) -> None:
    bench.deliver([_sell(bench)])
    bench.clock.advance(GIVEN_UP_AFTER)
    second = _sell(bench)

    dying = failing(bench.table, "put_item", lambda put: ">" in put["Item"].get("shard", {}).get("S", ""))
    with pytest.raises(Crashed):
        bench.deliver([second], by=bench.process(dying))
    bench.clock.advance(GIVEN_UP_AFTER + MINUTE)
    _put(s3, bench, [second])
    bench.deliver([_sell(bench)], by=bench.process())
    _redrive(s3, bench)
    assert _counts(bench) == (3, 3)


def test_batches_beyond_the_most_books_are_in_doubt(bench: Workbench, s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MOST_BOOKS", 2)
    assert MOST_BOOKS == 20
    for _ in range(4):
        lost = _sell(bench)
        bench.clock.advance(GIVEN_UP_AFTER + MINUTE)
        _put(s3, bench, [lost])
        bench.deliver([_sell(bench)], by=bench.process())
    redriven = _redrive(s3, bench)
    assert [batch.quarantined for batch in redriven] == [0, 0, 1, 1]
    assert _counts(bench) == (6, 6)
    assert all("may have been counted" in entry.reason for entry in bench.counters.quarantined())


@pytest.mark.parametrize("created", [{}, {"ApproximateCreationDateTime": None}])
def test_a_record_without_the_time_of_its_creation_is_counted(bench: Workbench, created: dict[str, Any]) -> None:
    sold = _sell(bench)
    change = {name: value for name, value in sold["dynamodb"].items() if name != "ApproximateCreationDateTime"}
    for _ in range(2):
        bench.deliver([{**sold, "dynamodb": change | created}], by=bench.process())
    assert _counts(bench) == (1, 1)


def test_a_bucket_is_counted_in_the_order_of_its_shards(bench: Workbench, s3: Any) -> None:
    lost = [_sell(bench) for _ in range(12)]
    bench.clock.advance(GIVEN_UP_AFTER + MINUTE)
    keys = [_put(s3, bench, lost[start:end]) for start, end in ((9, 12), (0, 5), (5, 9))]
    redriven = _redrive(s3, bench)
    assert [batch.key for batch in redriven] == [keys[1], keys[2], keys[0]]
    assert _counts(bench) == (12, 12)


def test_a_problem_stops_its_shard_and_no_other(bench: Workbench, s3: Any) -> None:
    stuck = [_put(s3, bench, [_sell(bench, shop)]) for shop in ("bad", "x")]
    other = _put(s3, bench, [_sell(bench)], shard="shardId-00000000000000000007")
    unreadable = "aws/lambda/7a2b/unreadable"
    s3.put_object(Bucket=BUCKET, Key=unreadable, Body=b"[" * 100_000)
    foreign = _put(s3, bench, bench.records(), table="another", shard="shardId-00000000000000000008")

    denied = failure("UpdateItem", "AccessDeniedException")
    client = failing(bench.table, "update_item", lambda update: update["Key"]["sk"] == {"S": "SHOP#bad"}, denied)
    redriven = {batch.key: batch.problem for batch in _redrive(s3, bench, client=client)}
    assert redriven.keys() == {*stuck, other, unreadable, foreign}
    assert "AccessDenied" in str(redriven[stuck[0]])
    assert redriven[stuck[1]] == f"waits for {stuck[0]}, an earlier batch of its shard"
    assert "expected a stream of 'counters'" in str(redriven[foreign])
    assert redriven[other] is None
    assert "not what Lambda writes" in str(redriven[unreadable])
    assert [batch.problem for batch in _redrive(s3, bench) if batch.key in stuck] == [None, None]
    assert _counts(bench) == (3, 2)


def test_a_command_registers_nothing_and_counts_what_is_registered(bench: Workbench, s3: Any) -> None:
    key = _put(s3, bench, [_sell(bench)])
    before = read_registry(_table(bench))
    done = _command(s3, bench, BUCKET, "--yes", "--declarations", encode((SALES, replace(SHOPS, name="others"))))
    assert (done.code, _counts(bench)) == (0, (1, 1))
    assert key in done.out
    assert read_registry(_table(bench)) == before


def test_a_command_goes_on_while_names_are_registered(bench: Workbench, s3: Any) -> None:
    for number in range(2):
        _put(s3, bench, [_sell(bench)], shard=f"shardId-0000000000000000000{number}")
    redriving = redrive_bucket(_table(bench), OnFailureBucket(s3, BUCKET))
    assert next(redriving).problem is None
    bench.deploy([SALES, SHOPS, replace(SHOPS, name="others", pk="OTHERS")])
    assert [batch.problem for batch in redriving] == [None]
    assert _counts(bench) == (2, 2)


def test_a_command_on_a_table_that_no_deployment_counts_says_what_to_do(s3: Any) -> None:
    bench = Workbench([SALES])
    _put(s3, bench, [_sell(bench)])
    for given in ((), ("--declarations", encode((SALES,)))):
        done = _command(s3, bench, BUCKET, "--yes", *given)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert "nothing counts the table yet" in done.err
    assert not [item for item in bench.table.items() if item["pk"]["S"] == "CHECKPOINT#"]


def _command(s3: Any, bench: Workbench, *arguments: str, table: str = "", **outside: Any) -> Done:
    clients = {"s3": s3}
    return run(
        *("bucket", "redrive", *arguments, "--table", table or bench.table.name),
        client=bench.table,
        clients=clients,
        clock=bench.clock,
        sleep=bench.clock.advance,
        **outside,
    )


def test_the_command_says_what_became_of_each_object(bench: Workbench, s3: Any) -> None:
    bench.deliver([_sell(bench)])
    bench.clock.advance(GIVEN_UP_AFTER + MINUTE)
    key = _put(s3, bench, [_sell(bench), _sell(bench)])
    looked = _command(s3, bench, BUCKET, "--dry-run", "--json")
    [told] = looked.document["objects"]
    assert (looked.code, told["key"], told["records"], told["updated"]) == (0, key, 2, 0)
    questions: list[str] = []

    def refuse(question: str) -> bool:
        questions.append(question)
        return False

    assert _command(s3, bench, BUCKET, answer=refuse).code == 1
    assert questions == ["Count 2 records of 1 objects, and delete the objects?"]
    assert _command(s3, bench, BUCKET).code == 2, "no question was asked"
    assert _counts(bench) == (1, 1)

    done = _command(s3, bench, BUCKET, "--yes")
    assert (done.code, done.out) == (0, f"{key}: 2 records; 2 items updated, 0 entries quarantined\n")
    assert _counts(bench) == (3, 3)
    assert _command(s3, bench, BUCKET).out == "The bucket holds nothing.\n"
    s3.put_object(Bucket=BUCKET, Key="aws/lambda/x", Body=b"{}")
    left = _command(s3, bench, BUCKET, "--yes")
    assert (left.code, "not what Lambda writes" in left.out) == (1, True)


SPOILED: dict[str, Callable[[list[Any]], object]] = {
    "no number": lambda records: records[1]["dynamodb"].update(SequenceNumber="x"),
    "no change": lambda records: records[1].clear(),
    "backward": list.reverse,
    "created at some time": lambda records: records[0]["dynamodb"].update(ApproximateCreationDateTime="noon"),
    "no image": lambda records: records[2]["dynamodb"].update(NewImage=True),
    "of two shops": lambda records: records[2]["dynamodb"]["NewImage"]["shop"].update(S=["x", "y"]),
    "empty": list.clear,
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_spoiled_object_stays_and_stops_no_other(
    bench: Workbench, s3: Any, spoil: Callable[[list[Any]], object]
) -> None:
    good, spoiled = [_sell(bench)], [dict(_sell(bench)) for _ in range(3)]
    spoiled = json.loads(json.dumps(spoiled))
    key = _put(s3, bench, spoiled)
    document = json.loads(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    spoil(spoiled)
    document["payload"] = {"Records": spoiled}
    s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(document).encode())
    _put(s3, bench, good)
    problems = {batch.key: batch.problem for batch in _redrive(s3, bench)}
    assert "not what Lambda writes" in str(problems.pop(key))
    assert list(problems.values()) == [None]
    assert _counts(bench) == (1, 1)


def test_an_object_that_goes_meanwhile_is_reported(bench: Workbench, s3: Any) -> None:
    keys = [_put(s3, bench, [_sell(bench)]), _put(s3, bench, [_sell(bench)], shard="shardId-00000000000000000007")]
    redriving = redrive_bucket(_table(bench), OnFailureBucket(s3, BUCKET))
    first = next(redriving)
    [other] = {*keys} - {first.key}
    s3.delete_object(Bucket=BUCKET, Key=other)
    [second] = redriving
    assert (second.key, "NoSuchKey" in str(second.problem)) == (other, True)


@pytest.mark.parametrize(("table", "bucket"), [("none", BUCKET), ("", "none")])
def test_a_table_or_bucket_that_is_not_there_is_one_line(bench: Workbench, s3: Any, table: str, bucket: str) -> None:
    done = _command(s3, bench, bucket, table=table)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "found nothing of that name" in done.err


def test_an_object_that_cannot_be_read_now_is_not_overtaken(bench: Workbench, s3: Any) -> None:
    bench.deliver([_sell(bench)])
    keys = [_put(s3, bench, [_sell(bench)]) for _ in range(2)]
    bench.clock.advance(GIVEN_UP_AFTER + MINUTE)
    bench.deliver([_sell(bench)])

    busy = failing(s3, "get_object", lambda get: get["Key"] == keys[0], failure("GetObject", "SlowDown", "SlowDown"))
    with pytest.raises(ClientError, match="SlowDown"):
        list(redrive_bucket(_table(bench), OnFailureBucket(busy, BUCKET)))
    assert [batch.problem for batch in _redrive(s3, bench)] == [None, None]
    assert _counts(bench) == (4, 4)
