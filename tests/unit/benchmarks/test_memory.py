from __future__ import annotations

from typing import Any

import pytest

from benchmarks.memory import MemoryClient
from benchmarks.usage import Usage
from tests.harness.failures import ConditionalCheckFailedException, TransactionCanceledException

_KEY: dict[str, Any] = {"pk": {"S": "a"}, "sk": {"S": "b"}}
_ADD: dict[str, Any] = {
    "TableName": "t",
    "Key": _KEY,
    "UpdateExpression": "ADD #n :one",
    "ExpressionAttributeNames": {"#n": "n"},
    "ExpressionAttributeValues": {":one": {"N": "1"}},
}


@pytest.fixture
def client() -> MemoryClient:
    made = MemoryClient(Usage())
    made.create("t", "pk", "sk")
    return made


def test_a_kilobyte_is_a_unit_and_a_transaction_doubles(client: MemoryClient) -> None:
    client.put_item(TableName="t", Item={**_KEY, "x": {"S": "y" * 1500}})
    assert client.usage.writes == 2
    client.transact_write_items(TransactItems=[{"Update": _ADD}])
    assert client.usage.writes == 6
    assert client.usage.calls == 2


def test_a_refused_put_costs_and_changes_nothing(client: MemoryClient) -> None:
    client.update_item(**_ADD)
    with pytest.raises(ConditionalCheckFailedException):
        client.put_item(TableName="t", Item=_KEY, ConditionExpression="attribute_not_exists(pk)")
    assert client.usage.writes == 2
    assert [item["n"] for item in client.items("t")] == [{"N": "1"}]


def test_a_cancelled_transaction_changes_nothing(client: MemoryClient) -> None:
    put = {"TableName": "t", "Item": {"pk": {"S": "c"}, "sk": {"S": "d"}}}
    refused = {**_ADD, "ConditionExpression": "attribute_exists(pk)"}
    with pytest.raises(TransactionCanceledException) as caught:
        client.transact_write_items(TransactItems=[{"Put": put}, {"Update": refused}])
    assert [reason["Code"] for reason in caught.value.response["CancellationReasons"]] == [
        "None",
        "ConditionalCheckFailed",
    ]
    assert list(client.items("t")) == []


def test_a_change_that_is_none_gives_no_record(client: MemoryClient) -> None:
    client.put_item(TableName="t", Item=_KEY)
    client.put_item(TableName="t", Item=_KEY)
    assert [record["eventName"] for record in client.stream] == ["INSERT"]


def test_a_query_is_charged_by_what_it_finds(client: MemoryClient) -> None:
    for number in range(3):
        client.put_item(TableName="t", Item={"pk": {"S": "q"}, "sk": {"S": f"{number}"}, "x": {"S": "y" * 3000}})
    found = client.query(
        TableName="t",
        KeyConditionExpression="pk = :pk AND sk BETWEEN :a AND :b",
        ExpressionAttributeValues={":pk": {"S": "q"}, ":a": {"S": "0"}, ":b": {"S": "1"}},
    )
    assert found["Count"] == 2
    assert client.usage.reads == 1.0
