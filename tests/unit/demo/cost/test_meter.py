from __future__ import annotations

import pytest

from demo.cost.meter import Meter
from tests.unit.demo.fakes import Network, client


def test_inserts_cost_what_their_items_weigh() -> None:
    dynamodb = client("dynamodb", Network({}, {}))
    meter = Meter(dynamodb)

    dynamodb.put_item(TableName="t", Item={"pk": {"S": "/a"}})
    dynamodb.put_item(TableName="t", Item={"pk": {"S": "x" * 1024}})

    assert (meter.write_units, meter.read_units) == (3, 0)


@pytest.mark.parametrize(("error", "units"), [("ConditionalCheckFailedException", 1), ("ValidationException", 0)])
def test_a_duplicate_costs_as_much_as_an_insert(error: str, units: int) -> None:
    dynamodb = client("dynamodb", Network({"__type": error}, status=400))
    meter = Meter(dynamodb)

    with pytest.raises(dynamodb.exceptions.ClientError):
        dynamodb.put_item(TableName="t", Item={"pk": {"S": "/a"}})
    assert meter.write_units == units


def test_queries_cost_what_they_find() -> None:
    found = {"Items": [{"pk": {"S": "x" * 5000}}]}
    dynamodb = client("dynamodb", Network(found, found, {"Items": []}))
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
    dynamodb = client("dynamodb", Network({"Responses": {"t": [{"pk": {"S": "x" * 2000}}, {"pk": {"S": "x"}}]}}))
    meter = Meter(dynamodb)

    dynamodb.batch_get_item(RequestItems={"t": {"Keys": [{"pk": {"S": "x"}}]}})

    assert (meter.items, meter.item_units, meter.read_units) == (2, 3, 0)
