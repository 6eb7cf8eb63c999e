from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse

from demo.meter import Meter, metric_sums


class Raw:
    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self) -> list[bytes]:
        return [self.body]


class Wire:
    """Answers requests in place of the network, and remembers them."""

    def __init__(self, *answers: dict[str, Any], status: int = 200) -> None:
        self.answers = list(answers)
        self.status = status
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: Any, **_: Any) -> AWSResponse:
        self.requests.append(json.loads(request.body))
        body = json.dumps(self.answers.pop(0)).encode()
        return AWSResponse("http://localhost", self.status, {}, Raw(body))  # type: ignore[arg-type]


def _client(service: str, wire: Wire) -> Any:
    client: Any = boto3.client(
        service,  # type: ignore[call-overload]
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.meta.events.register("before-send", wire)
    return client


def test_inserts_cost_what_their_items_weigh() -> None:
    client = _client("dynamodb", Wire({}, {}))
    meter = Meter(client)

    client.put_item(TableName="t", Item={"pk": {"S": "/a"}})
    client.put_item(TableName="t", Item={"pk": {"S": "x" * 1024}})

    assert (meter.write_units, meter.read_units) == (3, 0)


@pytest.mark.parametrize(("error", "units"), [("ConditionalCheckFailedException", 1), ("ValidationException", 0)])
def test_a_duplicate_costs_as_much_as_an_insert(error: str, units: int) -> None:
    client = _client("dynamodb", Wire({"__type": error}, status=400))
    meter = Meter(client)

    with pytest.raises(client.exceptions.ClientError):
        client.put_item(TableName="t", Item={"pk": {"S": "/a"}})
    assert meter.write_units == units


def test_queries_cost_what_they_find() -> None:
    found = {"Items": [{"pk": {"S": "x" * 5000}}]}
    client = _client("dynamodb", Wire(found, found, {"Items": []}))
    meter = Meter(client)
    asked = {
        "TableName": "t",
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "p"}},
    }

    client.query(**asked)
    client.query(**asked, ConsistentRead=True)
    client.query(**asked)

    assert (meter.read_units, meter.queries) == (3.5, 3)


def test_items_read_tell_what_writing_them_takes() -> None:
    client = _client("dynamodb", Wire({"Responses": {"t": [{"pk": {"S": "x" * 2000}}, {"pk": {"S": "x"}}]}}))
    meter = Meter(client)

    client.batch_get_item(RequestItems={"t": {"Keys": [{"pk": {"S": "x"}}]}})

    assert (meter.items, meter.item_units, meter.read_units) == (2, 3, 0)


def _logged(namespace: str, **values: object) -> dict[str, str]:
    metrics = [{"Name": name, "Unit": "Count"} for name in values]
    document = {"_aws": {"CloudWatchMetrics": [{"Namespace": namespace, "Metrics": metrics}]}, **values}
    return {"message": json.dumps(document)}


def test_metrics_in_a_log_are_added_up() -> None:
    wire = Wire(
        {"events": [{"message": "START"}, _logged("Mine", Units=[1.5]), {"message": "[]"}], "nextToken": "more"},
        {"events": [_logged("Mine", Units=[1, 2], Records=4), _logged("Others", Units=99), {"message": '{"a": 1}'}]},
    )

    assert metric_sums(_client("logs", wire), "/group", "Mine") == {"Units": 4.5, "Records": 4}
