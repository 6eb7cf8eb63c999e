"""Direct mode: the consumer accepts the messages that the template's integration makes of requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdk_dynamodb_counters import EventIngest
from dynamodb_counters import Counters
from dynamodb_counters.handlers import ingest_queue
from simulation.engines import Engine
from simulation.engines.tables import create_table
from simulation.handler_process import Context
from tests.unit.http.handlers import VIEW, environment
from tests.unit.infra.support import build, new_stack, synthesized

TABLE = "direct"


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


def test_the_consumer_takes_what_the_integration_sends(
    parameters: dict[str, Any], moto_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(monkeypatch)
    monkeypatch.setattr(ingest_queue.metrics.provider, "namespace", "Counters")
    create_table(moto_engine.client, TABLE)
    # moto refuses parameters in a PartiQL INSERT.
    counters = Counters(TABLE, client=moto_engine.client, bulk="put")
    settings = ingest_queue.Settings(counters, VIEW)
    monkeypatch.setattr(ingest_queue, "settings", lambda: settings)
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
    failures = ingest_queue.handler({"Records": records}, Context())["batchItemFailures"]
    assert [one["itemIdentifier"] for one in failures] == ["3", "4"]
    items = moto_engine.client.scan(TableName=TABLE)["Items"]
    assert sorted(item["time"]["S"] for item in items) == [view["time"] for view in views]
    assert {item["url"]["S"] for item in items} == {'/é "#'}
