from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from demo.cost import Bill, Costs, Meter
from tests.unit.demo.fakes import client

METRICS = {"ItemsUpdated": 5.0, "AlreadyCounted": 1.0}


def test_inserts_cost_what_their_items_weigh() -> None:
    dynamodb = client("dynamodb", "put_item", {}, {})
    meter = Meter(dynamodb)

    dynamodb.put_item(TableName="t", Item={"pk": {"S": "/a"}})
    dynamodb.put_item(TableName="t", Item={"pk": {"S": "x" * 1024}})

    assert (meter.write_units, meter.read_units) == (3, 0)


@pytest.mark.parametrize(("error", "units"), [("ConditionalCheckFailedException", 1), ("ValidationException", 0)])
def test_a_duplicate_costs_as_much_as_an_insert(error: str, units: int) -> None:
    dynamodb = client("dynamodb", "put_item", error)
    meter = Meter(dynamodb)

    with pytest.raises(dynamodb.exceptions.ClientError):
        dynamodb.put_item(TableName="t", Item={"pk": {"S": "/a"}})
    assert meter.write_units == units


def test_inserts_in_bulk_cost_the_same_and_what_failed_costs_nothing() -> None:
    answers = [{}, {"Error": {"Code": "DuplicateItem"}}, {"Error": {"Code": "ThrottlingError"}}]
    dynamodb = client("dynamodb", "batch_execute_statement", {"Responses": answers})
    meter = Meter(dynamodb)
    insert = {"Statement": "INSERT INTO \"t\" VALUE {'pk':?,'it''s':?}", "Parameters": [{"S": "a"}, {"S": "x" * 1020}]}

    dynamodb.batch_execute_statement(Statements=[insert] * 3)

    # 2 + 1 bytes of the key, 4 of the name, 1,020 of the value.
    assert meter.write_units == 2 * 2


def test_queries_cost_what_they_find() -> None:
    found = {"Items": [{"pk": {"S": "x" * 5000}}]}
    dynamodb = client("dynamodb", "query", found, found, {"Items": []})
    meter = Meter(dynamodb)
    asked = {
        "TableName": "t",
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "p"}},
    }

    dynamodb.query(**asked)
    dynamodb.query(**asked, ConsistentRead=True)
    dynamodb.query(**asked)

    assert (meter.read_units, meter.queries) == (3.5, 3)


def test_items_read_tell_what_writing_them_takes() -> None:
    found = {"Responses": {"t": [{"pk": {"S": "x" * 2000}}, {"pk": {"S": "x"}}]}}
    dynamodb = client("dynamodb", "batch_get_item", found)
    meter = Meter(dynamodb)

    dynamodb.batch_get_item(RequestItems={"t": {"Keys": [{"pk": {"S": "x"}}]}})

    assert (meter.items, meter.item_units, meter.read_units) == (2, 3, 0)


def test_chunks_of_events_are_no_counts() -> None:
    found = {"Items": [{"pk": {"S": "PACK#view#0"}, "_chunk": {"B": b"x"}}]}
    dynamodb = client("dynamodb", "query", found)
    meter = Meter(dynamodb)

    dynamodb.query(
        TableName="t", KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": {"S": "PACK#view#0"}}
    )

    assert (meter.items, meter.item_units, meter.read_units) == (0, 0, 0.5)


def test_writing_a_ranked_item_moves_its_entry_in_the_index() -> None:
    ranked = {"pk": {"S": "x"}, "_board": {"S": "URLS"}, "_score": {"N": "7"}}
    dynamodb = client("dynamodb", "query", {"Items": [ranked, {"pk": {"S": "x"}}]}, {"Items": [ranked]})
    meter = Meter(dynamodb)
    asked = {"TableName": "t", "KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "p"}}}

    dynamodb.query(**asked)
    dynamodb.query(**asked, IndexName="ranking")

    assert (meter.items, meter.item_units) == (2, 4)


@pytest.mark.parametrize(
    ("metrics", "sent", "costs"),
    [
        (METRICS, 4, Costs(2.0, 4.0, 0.5, METRICS, 0.25)),
        ({}, 4, Costs(2.0, None, 0.5, {}, 0.25)),
        (METRICS, 0, Costs(0.0, 0.0, 0.5, {})),
    ],
)
def test_units_are_divided_among_the_events(metrics: dict[str, float], sent: int, costs: Costs) -> None:
    accepting: Any = SimpleNamespace(write_units=8.0, read_units=1.0)
    reading: Any = SimpleNamespace(units_per_item=2.0, units_per_query=0.5)
    bill = Bill(cast("Meter", accepting), cast("Meter", reading), lambda: metrics)

    assert bill.costs(sent, distinct=min(sent, 3)) == costs
