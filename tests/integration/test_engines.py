"""Behavior that every engine must have for tests on it to prove anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from simulation.engines import Engine, EngineUnavailableError
from simulation.engines.dynamodb_local import DynamoDBLocal, install
from simulation.engines.tables import create_table
from simulation.schedules.backend import LocalBackend
from tests.integration.waiting import eventually, runs

# Only a failure takes this long.
PATIENCE_SECONDS = 60.0

START_THEN_DIE = """
import os, signal
from simulation.engines.dynamodb_local import start
with start() as engine:
    print(engine.process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_failed_condition_returns_the_old_item(engine: Engine, table: str) -> None:
    item = {"pk": {"S": "p"}, "sk": {"S": "s"}, "mark": {"S": "2".zfill(40)}}
    engine.client.put_item(TableName=table, Item=item)
    with pytest.raises(ClientError) as failure:
        engine.client.update_item(
            TableName=table,
            Key={"pk": {"S": "p"}, "sk": {"S": "s"}},
            UpdateExpression="SET mark = :last ADD n :one",
            ConditionExpression="attribute_not_exists(mark) OR mark < :first",
            ExpressionAttributeValues={
                ":first": {"S": "1".zfill(40)},
                ":last": {"S": "3".zfill(40)},
                ":one": {"N": "1"},
            },
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert failure.value.response["Error"]["Code"] == "ConditionalCheckFailedException"
    assert dict(failure.value.response)["Item"] == item


def test_a_refused_put_returns_the_item_that_is_there(engine: Engine, table: str) -> None:
    item: dict[str, Any] = {"pk": {"S": "p"}, "sk": {"S": "s"}, "names": {"SS": ["a", "b"]}}
    engine.client.put_item(TableName=table, Item=item)
    with pytest.raises(ClientError) as failure:
        engine.client.put_item(
            TableName=table,
            Item={"pk": {"S": "p"}, "sk": {"S": "s"}},
            ConditionExpression="attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert failure.value.response["Error"]["Code"] == "ConditionalCheckFailedException"
    response: Any = failure.value.response
    there = response["Item"]
    assert {**there, "names": {"SS": sorted(there["names"]["SS"])}} == item


def test_a_refused_transaction_says_which_condition_failed_and_writes_nothing(engine: Engine, table: str) -> None:
    def put(sk: str) -> Any:
        item = {"pk": {"S": "p"}, "sk": {"S": sk}}
        return {"Put": {"TableName": table, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}}

    engine.client.transact_write_items(TransactItems=[put("a")])
    with pytest.raises(ClientError) as failure:
        engine.client.transact_write_items(TransactItems=[put("a"), put("b")])
    response: Any = failure.value.response
    assert [reason.get("Code") for reason in response["CancellationReasons"]] == ["ConditionalCheckFailed", "None"]
    assert "Item" not in engine.client.get_item(TableName=table, Key={"pk": {"S": "p"}, "sk": {"S": "b"}})


def test_writes_show_in_the_stream(engine: Engine) -> None:
    assert engine.streams is not None
    table = "streamed"
    arn = create_table(engine.client, table, expires=False)
    engine.client.put_item(TableName=table, Item={"pk": {"S": "p"}, "sk": {"S": "s"}})
    (shard,) = engine.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    iterator = engine.streams.get_shard_iterator(
        StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    # Records become visible some milliseconds after the write.
    while not (records := engine.streams.get_records(ShardIterator=iterator)["Records"]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    engine.client.delete_table(TableName=table)
    (record,) = records
    assert record["eventName"] == "INSERT"
    assert record["dynamodb"]["NewImage"] == {"pk": {"S": "p"}, "sk": {"S": "s"}}


def test_a_rollover_closes_the_shard_and_opens_a_child(dynamodb_local_engine: DynamoDBLocal) -> None:
    engine = dynamodb_local_engine
    assert engine.streams is not None
    arn = create_table(engine.client, "rollover")
    engine.client.put_item(TableName="rollover", Item={"pk": {"S": "p"}, "sk": {"S": "s"}})
    engine.rollover()
    shards = engine.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    engine.client.delete_table(TableName="rollover")
    # Created in one millisecond, they come in any order.
    [closed] = [shard["ShardId"] for shard in shards if "EndingSequenceNumber" in shard["SequenceNumberRange"]]
    assert [shard.get("ParentShardId") for shard in shards if shard["ShardId"] != closed] == [closed]


def test_tables_of_schedules_take_no_thread_that_a_rollover_needs(dynamodb_local_engine: DynamoDBLocal) -> None:
    backend = LocalBackend(dynamodb_local_engine)
    ttl = backend.client.describe_time_to_live(TableName=backend.name)["TimeToLiveDescription"]
    backend.drop()
    assert ttl["TimeToLiveStatus"] == "DISABLED"


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads the kernel's list of sockets, Linux only")
def test_dynamodb_local_listens_on_loopback_only(dynamodb_local_engine: DynamoDBLocal) -> None:
    port = int((dynamodb_local_engine.endpoint_url or "").rpartition(":")[2])
    listening = "0A"
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path("/proc/net", table).read_text().splitlines()]
    addresses = {row[1] for row in rows if row[3] == listening and row[1].endswith(f":{port:04X}")}
    assert addresses == {f"0100007F:{port:04X}"}


def test_dynamodb_local_does_not_outlive_a_killed_parent(dynamodb_local_engine: DynamoDBLocal) -> None:
    root = Path(__file__).parents[2]
    parent = subprocess.run(
        [sys.executable, "-c", START_THEN_DIE], cwd=root, capture_output=True, text=True, timeout=300, check=False
    )
    assert parent.returncode == -signal.SIGKILL
    orphan = int(parent.stdout)
    assert eventually(lambda: not runs(orphan))


def test_without_java_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(EngineUnavailableError, match=r"needs a JDK 17 or newer .*default-jdk-headless"):
        install.find_java()
