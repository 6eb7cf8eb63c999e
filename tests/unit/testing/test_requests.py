"""Counters in memory refuse what DynamoDB refuses, and meter the rest as it does.

What DynamoDB Local answers, they do, too: tests/integration/test_replay.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._items.schema import read_units
from simulation.clock import VirtualClock
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from simulation.memory.memory_client import MemoryDynamoDB
from simulation.memory.typed_values import canonical

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=1))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
KEY = {"pk": {"S": "a"}, "sk": {"S": "1"}}
_OF_A: dict[str, Any] = {"KeyConditionExpression": "pk = :a", "ExpressionAttributeValues": {":a": {"S": "a"}}}


@pytest.fixture
def counters() -> Iterator[CountersInMemory]:
    with counters_in_memory([VIEWS]) as counters:
        yield counters


def send(counters: CountersInMemory, operation: str, **request: Any) -> Any:
    named = {} if operation in ("transact_write_items", "batch_get_item") else {"TableName": counters.table_name}
    return getattr(counters.client, operation)(**named, **request)


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        ("get_item", {"key": KEY}, "Unknown parameter in input"),
        ("put_item", {"Item": {**KEY, "n": 1}}, "Invalid type for parameter Item.n"),
        ("put_item", {"Item": KEY, "ConditonExpression": "attribute_not_exists(pk)"}, "ConditonExpression"),
        ("query", {"KeyConditionExpression": "pk = :a", "Limit": 0}, "valid min value: 1"),
        ("transact_write_items", {"TransactItems": []}, "valid min length: 1"),
    ],
)
def test_requests_that_the_service_model_refuses_never_leave_the_client(
    counters: CountersInMemory, operation: str, request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParamValidationError, match=message):
        send(counters, operation, **request_)


def _keys(number: int) -> list[dict[str, Any]]:
    return [{"pk": {"S": "a"}, "sk": {"S": str(index)}} for index in range(number)]


def _puts(number: int) -> list[dict[str, Any]]:
    return [{"Put": {"TableName": "counters", "Item": key}} for key in _keys(number)]


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        ("put_item", {"Item": KEY, "ReturnValues": "ALL_NEW"}, "ReturnValues can only be ALL_OLD or NONE"),
        ("put_item", {"Item": {**KEY, "n": {"S": "a", "N": "1"}}}, "more than one datatypes"),
        ("put_item", {"Item": {**KEY, "n": {}}}, "AttributeValue is empty"),
        ("transact_write_items", {"TransactItems": _puts(101)}, "less than or equal to 100"),
        ("batch_get_item", {"RequestItems": {"counters": {"Keys": _keys(101)}}}, "less than or equal to 100"),
        ("scan", {"FilterExpression": "attribute_exists(x)" + " OR attribute_exists(x)" * 200}, "size has exceeded"),
        ("scan", {"Select": "COUNT", "ProjectionExpression": "pk"}, "Select"),
        ("scan", {"Segment": 1}, "TotalSegments"),
        ("query", {**_OF_A, "FilterExpression": "sk = :a"}, "non-primary key attributes"),
    ],
)
def test_requests_that_dynamodb_refuses_are_refused(
    counters: CountersInMemory, operation: str, request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(ClientError, match=message) as refused:
        send(counters, operation, **request_)
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert send(counters, "scan", Select="COUNT")["Count"] <= 3, "checkpoints only"


def test_requests_that_are_not_known_in_memory_are_refused_never_passed_over(counters: CountersInMemory) -> None:
    for operation, request in (
        ("get_item", {"Key": KEY, "AttributesToGet": ["pk"]}),
        ("scan", {"IndexName": "ranking"}),
        ("update_item", {"Key": KEY, "UpdateExpression": "REMOVE x", "ReturnValues": "UPDATED_NEW"}),
    ):
        with pytest.raises(NotImplementedError, match="in memory"):
            send(counters, operation, **request)
    with pytest.raises(NotImplementedError, match="in memory"):
        counters.client.batch_write_item(RequestItems={})
    with pytest.raises(AttributeError):
        counters.client.put_itme()


def test_pages_end_at_one_megabyte(counters: CountersInMemory) -> None:
    for number in range(5):
        send(counters, "put_item", Item={**KEY, "sk": {"S": str(number)}, "text": {"S": "x" * 300_000}})
    pages = counters.client.get_paginator("query").paginate(TableName=counters.table_name, **_OF_A)
    assert [page["Count"] for page in pages] == [4, 1]


def test_a_number_has_one_form() -> None:
    assert [canonical(text) for text in ("1E+2", "0.10")] == ["100", "0.1"]


@pytest.fixture
def client() -> MemoryDynamoDB:
    database = MemoryDynamoDB(VirtualClock())
    database.create("t", "pk", "sk")
    return database


def test_a_kilobyte_is_a_unit_and_a_transaction_doubles(client: MemoryDynamoDB) -> None:
    client.put_item(TableName="t", Item={**KEY, "x": {"S": "y" * 1500}})
    assert client.usage.writes == 2
    update = {"TableName": "t", "Key": KEY, "UpdateExpression": "REMOVE n"}
    client.transact_write_items(TransactItems=[{"Update": update}])
    assert (client.usage.writes, client.usage.calls) == (6, 2)


def test_a_change_that_is_none_gives_no_record(client: MemoryDynamoDB) -> None:
    for _ in range(2):
        client.put_item(TableName="t", Item=KEY)
    stream = client.tables["t"].stream
    records = stream.read(stream.shards()[0].id, None, 10).records
    assert [record["eventName"] for record in records] == ["INSERT"]


def test_a_query_is_charged_by_what_it_finds(client: MemoryDynamoDB) -> None:
    for number in range(3):
        client.put_item(TableName="t", Item={"pk": {"S": "q"}, "sk": {"S": f"{number}"}, "x": {"S": "y" * 3000}})
    answer = client.query(
        TableName="t",
        KeyConditionExpression="pk = :pk AND sk BETWEEN :a AND :b",
        ExpressionAttributeValues={":pk": {"S": "q"}, ":a": {"S": "0"}, ":b": {"S": "1"}},
    )
    assert answer["Count"] == 2
    assert client.usage.reads == 1.0


def test_read_units_of_a_page_are_rounded_up_in_sum() -> None:
    assert read_units([{"a": {"S": "x" * 4095}}]) == 0.5
    assert read_units([{"a": {"S": "x" * 4096}}]) == 1
    assert read_units([{"a": {"S": "x" * 4096}}], consistent=True) == 2
    assert read_units([{"a": {"S": "x" * 100}}] * 25) == 0.5
