from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters._items.bookkeeping import read_units
from simulation.clock import VirtualClock
from simulation.memory.memory_stream import Record
from simulation.metered_table import Metered

_KEY: dict[str, Any] = {"pk": {"S": "a"}, "sk": {"S": "b"}}
_ADD: dict[str, Any] = {
    "TableName": "t",
    "Key": _KEY,
    "UpdateExpression": "ADD #n :one",
    "ExpressionAttributeNames": {"#n": "n"},
    "ExpressionAttributeValues": {":one": {"N": "1"}},
}


@pytest.fixture
def client() -> Metered:
    made = Metered(VirtualClock())
    made.create("t", "pk", "sk")
    return made


def test_a_kilobyte_is_a_unit_and_a_transaction_doubles(client: Metered) -> None:
    client.put_item(TableName="t", Item={**_KEY, "x": {"S": "y" * 1500}})
    assert client.usage.writes == 2
    client.transact_write_items(TransactItems=[{"Update": _ADD}])
    assert client.usage.writes == 6
    assert client.usage.calls == 2


def test_a_change_that_is_none_gives_no_record(client: Metered) -> None:
    client.put_item(TableName="t", Item=_KEY)
    client.put_item(TableName="t", Item=_KEY)
    assert [record["eventName"] for record in _records(client)] == ["INSERT"]


def test_a_query_is_charged_by_what_it_finds(client: Metered) -> None:
    for number in range(3):
        client.put_item(TableName="t", Item={"pk": {"S": "q"}, "sk": {"S": f"{number}"}, "x": {"S": "y" * 3000}})
    found = client.query(
        TableName="t",
        KeyConditionExpression="pk = :pk AND sk BETWEEN :a AND :b",
        ExpressionAttributeValues={":pk": {"S": "q"}, ":a": {"S": "0"}, ":b": {"S": "1"}},
    )
    assert found["Count"] == 2
    assert client.usage.reads == 1.0


def test_read_units_of_a_page_are_rounded_up_in_sum() -> None:
    assert read_units([{"a": {"S": "x" * 4095}}]) == 0.5
    assert read_units([{"a": {"S": "x" * 4096}}]) == 1
    assert read_units([{"a": {"S": "x" * 4096}}], consistent=True) == 2
    assert read_units([{"a": {"S": "x" * 100}}] * 25) == 0.5


def _records(client: Metered) -> list[Record]:
    stream = client.tables["t"].stream
    [shard] = stream.shards()
    return stream.read(shard.id, None, 10).records
