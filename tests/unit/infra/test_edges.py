"""The HTTP constructs: no endpoint is public by accident, roles fit the jobs, alarms watch what exists."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk.assertions import Annotations, Match, Template
from aws_cdk.aws_apigatewayv2 import HttpNoneAuthorizer
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer, HttpJwtAuthorizer
from botocore.exceptions import BotoCoreError

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator
from tests.unit.edges.handlers import ask, environment, post, request
from tests.unit.infra.support import TOP, VIEW, VIEWS, actions, new_stack, statements, synthesized

NATIVE = {
    "AWS/Lambda": {
        "IteratorAge",
        "Errors",
        "Throttles",
        "OnFailureDestinationDeliveredEventCount",
        "DroppedEventCount",
    },
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"},
    "AWS/ApiGateway": {"5xx", "Latency"},
}


def edges(authorizer: Any, **ingest: Any) -> Stack:
    stack = new_stack()
    counters = DedupCounterTable(stack, "Counters")
    StreamAggregator(stack, "Aggregator", table=counters, aggregates=[VIEWS], monitoring=True)
    CounterApi(stack, "Api", table=counters, shown=[VIEWS], authorizer=authorizer, monitoring=True)
    authorizer = authorizer or HttpIamAuthorizer()
    EventIngest(stack, "Ingest", table=counters, event=VIEW, authorizer=authorizer, monitoring=True, **ingest)
    return stack


def kinds(template: Template) -> set[str]:
    routes = template.find_resources("AWS::ApiGatewayV2::Route").values()
    assert len(routes) == 4
    return {route["Properties"]["AuthorizationType"] for route in routes}


def test_every_route_asks_for_a_signature_by_default() -> None:
    assert kinds(synthesized(edges(None))) == {"AWS_IAM"}


def test_every_route_asks_for_a_token_where_that_was_chosen() -> None:
    jwt = HttpJwtAuthorizer("Jwt", "https://issuer.example.com", jwt_audience=["counters"])
    stack = new_stack()
    CounterApi(stack, "Api", table=DedupCounterTable(stack, "Counters"), shown=[VIEWS], authorizer=jwt)
    routes = synthesized(stack).find_resources("AWS::ApiGatewayV2::Route").values()
    assert {route["Properties"]["AuthorizationType"] for route in routes} == {"JWT"}


def test_a_public_endpoint_is_warned_of() -> None:
    stack = edges(HttpNoneAuthorizer())
    assert kinds(synthesized(stack)) == {"NONE"}
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("The endpoint is public"))
    assert len(found) == 2


def test_an_ingest_without_a_choice_is_an_error() -> None:
    stack = new_stack()
    with pytest.raises(TypeError, match="authorizer"):
        EventIngest(stack, "Ingest", table=DedupCounterTable(stack, "Counters"), event=VIEW)  # type: ignore[call-arg]


def test_direct_mode_hands_the_body_to_the_queue_and_answers_202() -> None:
    template = synthesized(edges(None, mode="direct"))
    [direct] = [
        resource["Properties"]
        for resource in template.find_resources("AWS::ApiGatewayV2::Integration").values()
        if "IntegrationSubtype" in resource["Properties"]
    ]
    assert direct["IntegrationSubtype"] == "SQS-SendMessage"
    assert direct["RequestParameters"]["MessageBody"] == "$request.body"
    assert direct["RequestParameters"].keys() == {"MessageBody", "QueueUrl"}
    [mapped] = direct["ResponseParameters"]["200"]["ResponseParameters"]
    assert mapped == {"Destination": "overwrite:statuscode", "Source": "202"}
    sending = [one for one in statements(template) if "sqs:SendMessage" in actions(one)]
    assert sending


def test_queues_are_encrypted_and_give_up_into_the_other_one() -> None:
    queues = [
        resource["Properties"] for resource in synthesized(edges(None)).find_resources("AWS::SQS::Queue").values()
    ]
    assert [queue["SqsManagedSseEnabled"] for queue in queues] == [True, True]
    [queue] = [queue for queue in queues if "RedrivePolicy" in queue]
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 3
    assert queue["VisibilityTimeout"] == 360


def test_roles_may_do_their_job_and_no_more() -> None:
    stack = new_stack()
    counters = DedupCounterTable(stack, "Counters")
    EventIngest(stack, "Ingest", table=counters, event=VIEW, authorizer=HttpIamAuthorizer())
    CounterApi(stack, "Api", table=counters, shown=[VIEWS])
    granted: dict[str, set[str]] = {}
    for name, policy in synthesized(stack).find_resources("AWS::IAM::Policy").items():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            granted.setdefault(name, set()).update(actions(statement))
    own = {name: {one for one in given if not one.startswith(("logs:", "xray:"))} for name, given in granted.items()}
    assert sorted(map(sorted, own.values())) == [
        ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"],
        [
            "dynamodb:PartiQLInsert",
            "dynamodb:PutItem",
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:GetQueueUrl",
            "sqs:ReceiveMessage",
        ],
        ["sqs:SendMessage"],
    ]


def test_aggregator_and_ingest_do_not_ask_the_ranking_index() -> None:
    stack = new_stack()
    counters = DedupCounterTable(stack, "Counters", ranking_index=True)
    StreamAggregator(stack, "Aggregator", table=counters, aggregates=[TOP])
    EventIngest(stack, "Ingest", table=counters, event=VIEW, authorizer=HttpIamAuthorizer())
    table, stream = stack.resolve(counters.table_arn), stack.resolve(counters.table_stream_arn)
    granted = [one for one in statements(synthesized(stack)) if actions(one)[0].startswith("dynamodb:")]
    assert sorted((one["Resource"] for one in granted), key=str) == [table, table, stream]


def test_api_asks_the_ranking_index() -> None:
    stack = new_stack()
    counters = DedupCounterTable(stack, "Counters", ranking_index=True)
    CounterApi(stack, "Api", table=counters, shown=[TOP])
    table = stack.resolve(counters.table_arn)
    [granted] = [one for one in statements(synthesized(stack)) if "dynamodb:Query" in actions(one)]
    assert granted["Resource"] == [table, {"Fn::Join": ["", [table, "/index/*"]]}]


def test_every_alarm_watches_a_metric_that_exists(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment(monkeypatch)
    ask(request("GET", "/v1/aggregates/site"))
    ask(request("GET", "/v1/nothing"))
    post(request("POST", "/events", body="[]", headers={"content-type": "application/json"}))
    emitted = _emitted(capsys.readouterr().out) | _of_aggregator_and_consumer(monkeypatch, capsys)
    alarms = synthesized(edges(None)).find_resources("AWS::CloudWatch::Alarm").values()
    assert len(alarms) == 8 + 5 + 6
    for alarm in (alarm["Properties"] for alarm in alarms):
        known = NATIVE.get(alarm["Namespace"], emitted)
        assert alarm["MetricName"] in known, alarm["AlarmDescription"]
        if alarm["Namespace"] == "DynamoDBCounters":
            assert [dimension["Name"] for dimension in alarm["Dimensions"]] == ["service"]


def _of_aggregator_and_consumer(patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> set[str]:
    from dynamodb_counters.aggregator import Report  # noqa: PLC0415
    from dynamodb_counters.handlers import aggregator, api, ingest  # noqa: PLC0415
    from tests.unit.edges.handlers import Context  # noqa: PLC0415

    for module in (aggregator, ingest):
        patch.setattr(module.metrics.provider, "namespace", "Counters")
    report = Report(records=2, updated=1, skipped=0, quarantined=0, late=0, write_units=1)
    patch.setattr(aggregator, "aggregator", type("A", (), {"handle": lambda *_: report}))
    aggregator.handler({"Records": []}, Context())
    counters = type("C", (), {"accept_many": lambda *_: []})()
    patch.setattr(ingest, "target", lambda: (counters, VIEW))
    record = {"messageId": "1", "body": "{", "eventSource": "aws:sqs"}
    assert ingest.handler({"Records": [record]}, Context()) == {"batchItemFailures": [{"itemIdentifier": "1"}]}

    def throttled() -> Any:
        raise BotoCoreError

    patch.setattr(api, "reading", throttled)
    assert ask(request("GET", "/v1/aggregates/site"))[0] == 503
    return _emitted(capsys.readouterr().out)


def _emitted(printed: str) -> set[str]:
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith("{") and '"_aws"' in line]
    return {metric["Name"] for line in lines for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
