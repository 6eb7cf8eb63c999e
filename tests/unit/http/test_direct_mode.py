"""Direct mode: the consumer accepts the messages that the template's integration makes of requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdk_dynamodb_counters import EventIngest
from tests.unit.http.counted import consumer
from tests.unit.http.handlers import ranked_table
from tests.unit.infra.support import build, new_stack, synthesized


@pytest.fixture(scope="module")
def parameters() -> dict[str, Any]:
    template = synthesized(build(EventIngest, new_stack(), mode="direct"))
    [integration] = template.find_resources("AWS::ApiGatewayV2::Integration").values()
    assert integration["Properties"]["IntegrationSubtype"] == "SQS-SendMessage"
    found: dict[str, Any] = integration["Properties"]["RequestParameters"]
    assert found["QueueUrl"]["Ref"] in template.find_resources("AWS::SQS::Queue")
    return found


def message(parameters: dict[str, Any], body: str, number: int) -> dict[str, Any]:
    """Map a request as API Gateway documents it: parts of it go where the integration's parameters say."""
    mapped = {"$request.body": body}[parameters["MessageBody"]]
    return {"messageId": str(number), "body": mapped, "eventSource": "aws:sqs"}


def test_the_consumer_takes_what_the_integration_sends(parameters: dict[str, Any]) -> None:
    table = ranked_table()
    views = [{"url": '/é "#', "time": f"2026-09-21T14:2{minute}:00Z", "clientId": "c"} for minute in range(3)]
    bodies = [
        json.dumps(views[0]),
        json.dumps(views, indent=2),
        json.dumps(views[1], ensure_ascii=False),
        "no JSON",
        json.dumps([{"url": "/incomplete"}]),
        "[]",
    ]
    records = [message(parameters, body, number) for number, body in enumerate(bodies)]
    failures = consumer(table)({"Records": records})["batchItemFailures"]
    assert [one["itemIdentifier"] for one in failures] == ["3", "4"]
    items = list(table.items())
    assert sorted(item["time"]["S"] for item in items) == [view["time"] for view in views]
    assert {item["url"]["S"] for item in items} == {'/é "#'}
