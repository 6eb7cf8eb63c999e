"""The HTTP constructs: no endpoint is public by accident, and roles allow only what the functions do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aws_cdk import CfnParameter, Duration, Stack
from aws_cdk.assertions import Annotations, Match, Template
from aws_cdk.aws_apigatewayv2 import HttpMethod, HttpNoneAuthorizer, HttpRoute, HttpRouteKey
from aws_cdk.aws_apigatewayv2_authorizers import HttpJwtAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from aws_cdk.aws_lambda import Code, Function, Runtime

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator
from dynamodb_counters._declarations import Event, Packed
from dynamodb_counters._declarations.codec import encode
from simulation.throttled_burst import new_consumer, run
from tests.unit.infra.support import (
    PACKED,
    TOP,
    VIEW,
    actions,
    build,
    each,
    environment,
    new_stack,
    properties,
    statements,
    synthesized,
)

_QUEUE = "AWS::SQS::Queue"
POST = HttpMethod.POST


def http_stack(authorizer: Any, **ingest: Any) -> Stack:
    stack = new_stack()
    counters = build(DedupCounterTable, stack)
    chosen = {} if authorizer is None else {"authorizer": authorizer}
    build(CounterApi, stack, table=counters, monitoring=True, **chosen)
    build(EventIngest, stack, table=counters, monitoring=True, **chosen, **ingest)
    return stack


def kinds(template: Template) -> set[str]:
    routes = each(template, "AWS::ApiGatewayV2::Route")
    assert len(routes) == 4
    return {route["AuthorizationType"] for route in routes}


def test_what_the_table_refuses_for_an_hour_becomes_no_dead_letter(stack: Stack) -> None:
    """Lambda's loop detection, as the template sets it, leaves the consumer's own queue alone."""
    build(EventIngest, stack)
    [consumer] = [one for one in each(synthesized(stack), "AWS::Lambda::Function") if "ingest_queue" in one["Handler"]]
    recursive_loop = consumer.get("RecursiveLoop", "Terminate")
    found = run(new_consumer, events=200, units_per_second=50, outage=3600, recursive_loop=recursive_loop)
    assert found["events in the dead-letter queue"] == 0
    assert found["accepted"] == 200


def test_every_route_asks_for_a_signature_by_default() -> None:
    assert kinds(synthesized(http_stack(None))) == {"AWS_IAM"}


def test_every_route_asks_for_a_token_where_that_was_chosen(stack: Stack) -> None:
    jwt = HttpJwtAuthorizer("Jwt", "https://issuer.example.com", jwt_audience=["counters"])
    build(CounterApi, stack, authorizer=jwt)
    routes = each(synthesized(stack), "AWS::ApiGatewayV2::Route")
    assert {route["AuthorizationType"] for route in routes} == {"JWT"}


def test_a_public_endpoint_is_warned_of() -> None:
    stack = http_stack(HttpNoneAuthorizer())
    assert kinds(synthesized(stack)) == {"NONE"}
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("The endpoint is public"))
    assert len(found) == 2


def test_an_ingest_without_a_choice_is_an_error(stack: Stack, counters: DedupCounterTable) -> None:
    with pytest.raises(TypeError, match="authorizer"):
        EventIngest(stack, "Ingest", table=counters, event=VIEW)  # type: ignore[call-arg]


def test_direct_mode_hands_the_body_to_the_queue_and_answers_202() -> None:
    template = synthesized(http_stack(None, mode="direct"))
    [direct] = [one for one in each(template, "AWS::ApiGatewayV2::Integration") if "IntegrationSubtype" in one]
    assert direct["IntegrationSubtype"] == "SQS-SendMessage"
    assert direct["RequestParameters"]["MessageBody"] == "$request.body"
    assert direct["RequestParameters"].keys() == {"MessageAttributes", "MessageBody", "QueueUrl"}
    [mapped] = direct["ResponseParameters"]["200"]["ResponseParameters"]
    assert mapped == {"Destination": "overwrite:statuscode", "Source": "202"}
    assert any("sqs:SendMessage" in actions(statement) for statement in statements(template))


def test_queues_are_encrypted_and_give_up_into_the_other_one() -> None:
    queues = each(synthesized(http_stack(None)), "AWS::SQS::Queue")
    assert [queue["SqsManagedSseEnabled"] for queue in queues] == [True, True]
    [queue] = [queue for queue in queues if "RedrivePolicy" in queue]
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 10
    assert queue["VisibilityTimeout"] == 6 * 60 + 1


@pytest.mark.parametrize(
    ("retention", "kept", "dead"),
    [
        (None, 4 * 86_400, 14 * 86_400),
        (timedelta(days=30), 4 * 86_400, 14 * 86_400),
        (timedelta(days=7), 4 * 86_400, 7 * 86_400),
        (timedelta(days=1), 86_400, 86_400),
        (timedelta(seconds=1.5), 60, 60),
    ],
)
def test_messages_are_kept_no_longer_than_their_event(retention: timedelta | None, kept: int, dead: int) -> None:
    template = synthesized(build(EventIngest, new_stack(), event=replace(VIEW, retention=retention)))
    queues = each(template, "AWS::SQS::Queue")
    assert {"RedrivePolicy" in queue: queue["MessageRetentionPeriod"] for queue in queues} == {True: kept, False: dead}
    [age] = [one for one in each(template, "AWS::CloudWatch::Alarm") if "expiring" in one["AlarmDescription"]]
    assert age["Threshold"] == int(0.8 * dead)


def test_the_consumer_may_send_to_both_queues_and_knows_them() -> None:
    template = synthesized(build(EventIngest, new_stack(), mode="direct"))
    queues = {"RedrivePolicy" in found["Properties"]: name for name, found in template.find_resources(_QUEUE).items()}
    variables = environment(template)
    assert variables["QUEUE_URL"] == {"Ref": queues[True]}
    assert variables["DEAD_LETTER_QUEUE_URL"] == {"Ref": queues[False]}
    [role] = [one["Role"] for one in each(template, "AWS::Lambda::Function")]
    [policy] = [one for one in each(template, "AWS::IAM::Policy") if {"Ref": role["Fn::GetAtt"][0]} in one["Roles"]]
    [sending] = [one for one in policy["PolicyDocument"]["Statement"] if one["Action"] == "sqs:SendMessage"]
    arns = sorted(({"Fn::GetAtt": [name, "Arn"]} for name in queues.values()), key=str)
    assert sorted(sending["Resource"], key=str) == arns


def batching(**arguments: Any) -> tuple[int, int, int | None, int]:
    """How an ingest's messages are batched: size, window, concurrency; and how long they stay invisible."""
    template = synthesized(build(EventIngest, new_stack(), **arguments))
    mapping = properties(template, "AWS::Lambda::EventSourceMapping")
    [queue] = [queue for queue in each(template, "AWS::SQS::Queue") if "RedrivePolicy" in queue]
    concurrency = mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
    return mapping["BatchSize"], mapping["MaximumBatchingWindowInSeconds"], concurrency, queue["VisibilityTimeout"]


def test_packed_events_are_accepted_by_few_in_large_batches() -> None:
    assert batching() == (100, 1, None, 361)
    assert batching(event=PACKED) == (1000, 5, 2, 365)
    chosen = {"batch_size": 20, "max_batching_window": Duration.minutes(1), "max_concurrency": 1000}
    assert batching(event=PACKED, **chosen) == batching(**chosen) == (20, 60, 1000, 420)


def test_a_window_known_at_deployment_is_taken_for_the_longest(stack: Stack, counters: DedupCounterTable) -> None:
    window = Duration.seconds(CfnParameter(stack, "Window", type="Number").value_as_number)
    build(EventIngest, stack, table=counters, max_batching_window=window)
    assert {queue.get("VisibilityTimeout") for queue in each(synthesized(stack), "AWS::SQS::Queue")} == {None, 660}


_DATED = replace(PACKED, packed=Packed("time", since=datetime(2026, 1, 1, tzinfo=UTC)))


@pytest.mark.parametrize(
    ("event", "allowed"),
    [
        (VIEW, {"GetItem", "PutItem", "PartiQLInsert"}),
        (PACKED, {"PutItem", "Query"}),
        (_DATED, {"PutItem", "Query", "PartiQLInsert"}),
    ],
    ids=["plain", "packed", "packed-from-a-date-on"],
)
def test_the_consumer_may_do_what_its_event_takes(event: Event, allowed: set[str], stack: Stack) -> None:
    build(EventIngest, stack, event=event)
    granted = {action for one in statements(synthesized(stack)) for action in actions(one)}
    assert {action for action in granted if action.startswith("dynamodb:")} == {f"dynamodb:{one}" for one in allowed}


def test_roles_may_do_their_job_and_no_more(stack: Stack, counters: DedupCounterTable) -> None:
    build(EventIngest, stack, table=counters)
    build(CounterApi, stack, table=counters)
    granted: dict[str, set[str]] = {}
    for name, policy in synthesized(stack).find_resources("AWS::IAM::Policy").items():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            granted.setdefault(name, set()).update(actions(statement))
    own = {name: {one for one in given if not one.startswith(("logs:", "xray:"))} for name, given in granted.items()}
    assert sorted(map(sorted, own.values())) == [
        ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"],
        [
            "dynamodb:GetItem",
            "dynamodb:PartiQLInsert",
            "dynamodb:PutItem",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:ReceiveMessage",
            "sqs:SendMessage",
        ],
        ["sqs:SendMessage"],
    ]


def test_aggregator_and_ingest_do_not_ask_the_ranking_index(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters", ranking_index=True)
    build(StreamAggregator, stack, table=counters, aggregates=[TOP])
    build(EventIngest, stack, table=counters)
    table, stream = stack.resolve(counters.table_arn), stack.resolve(counters.table_stream_arn)
    granted = [one for one in statements(synthesized(stack)) if actions(one)[0].startswith("dynamodb:")]
    assert sorted((one["Resource"] for one in granted), key=str) == [table, table, stream]


def test_api_asks_the_ranking_index(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters", ranking_index=True)
    build(CounterApi, stack, table=counters, shown=[TOP])
    table = stack.resolve(counters.table_arn)
    granted = {
        action: one["Resource"]
        for one in statements(synthesized(stack))
        for action in actions(one)
        if action.startswith("dynamodb:")
    }
    assert granted == {
        "dynamodb:Query": [table, {"Fn::Join": ["", [table, "/index/*"]]}],
        # Which no index knows.
        "dynamodb:BatchGetItem": table,
        "dynamodb:GetItem": table,
    }


def test_an_api_lists_the_events_it_is_told(stack: Stack) -> None:
    assert "EVENTS" not in environment(synthesized(build(CounterApi, new_stack())))
    build(CounterApi, stack, events=[VIEW, PACKED], authorizer=HttpNoneAuthorizer())
    assert environment(synthesized(stack))["EVENTS"] == encode((PACKED, VIEW))
    Annotations.from_stack(stack).has_warning("*", Match.string_like_regexp("the counts and the events it shows"))


def test_what_holds_events_outlives_its_stack(stack: Stack, counters: DedupCounterTable) -> None:
    build(StreamAggregator, stack, table=counters)
    build(EventIngest, stack, table=counters)
    holding = {"AWS::DynamoDB::GlobalTable": 1, "AWS::S3::Bucket": 1, "AWS::SQS::Queue": 2}
    template = synthesized(stack)
    for resource_type, number in holding.items():
        resources = template.find_resources(resource_type).values()
        assert len(resources) == number
        for resource in resources:
            assert (resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy")) == ("Retain", "Retain")


def test_scripts_of_other_origins_may_send_what_a_signature_takes(stack: Stack) -> None:
    build(EventIngest, stack, allow_origins=["https://example.com"])
    [api] = each(synthesized(stack), "AWS::ApiGatewayV2::Api")
    signed = {"authorization", "content-type", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"}
    assert set(api["CorsConfiguration"]["AllowHeaders"]) == signed


def test_access_logs_do_not_grow_the_resource_policy_of_the_account(stack: Stack, counters: DedupCounterTable) -> None:
    build(CounterApi, stack, table=counters)
    build(EventIngest, stack, table=counters)
    template = synthesized(stack)
    groups = template.find_resources("AWS::Logs::LogGroup")
    stages = each(template, "AWS::ApiGatewayV2::Stage")
    assert len(stages) == 2
    for stage in stages:
        [logged, _] = stage["AccessLogSettings"]["DestinationArn"]["Fn::GetAtt"]
        name = groups[logged]["Properties"]["LogGroupName"]
        assert name == {"Fn::Join": ["", ["/aws/vendedlogs/apis/", stage["ApiId"]]]}
        assert groups[logged]["Properties"]["RetentionInDays"] == 30


@pytest.mark.parametrize(("authorizer", "cached_by"), [(None, "private"), (HttpNoneAuthorizer(), "public")])
def test_only_what_anybody_may_read_is_cached_for_anybody(authorizer: Any, cached_by: str, stack: Stack) -> None:
    build(CounterApi, stack, authorizer=authorizer)
    assert environment(synthesized(stack))["CACHE_CONTROL"] == f"{cached_by}, max-age=5"


def _another_ingest(stack: Stack, api: CounterApi, counters: DedupCounterTable) -> None:
    build(EventIngest, stack, table=counters, event=PACKED, http_api=api.http_api, construct_id="Another")


def _a_batch(stack: Stack, api: CounterApi, counters: DedupCounterTable) -> None:
    build(EventIngest, stack, table=counters, http_api=api.http_api, path="/v1/batch", construct_id="Another")


def _one_of_their_own(stack: Stack, api: CounterApi, counters: DedupCounterTable) -> None:
    handler = Function(stack, "Own", code=Code.from_inline("-"), handler="index.handler", runtime=Runtime.PYTHON_3_14)
    own = HttpLambdaIntegration("Own", handler)
    HttpRoute(stack, "Theirs", http_api=api.http_api, route_key=HttpRouteKey.with_("/events", POST), integration=own)


@pytest.mark.parametrize(
    ("add", "route"),
    [(_another_ingest, "POST /events"), (_a_batch, "POST /v1/batch"), (_one_of_their_own, "POST /events")],
)
def test_a_route_that_an_api_has_twice_is_refused(
    add: Callable[[Stack, CounterApi, DedupCounterTable], None], route: str, stack: Stack, counters: DedupCounterTable
) -> None:
    api = build(CounterApi, stack, table=counters)
    build(EventIngest, stack, table=counters, http_api=api.http_api)
    other = build(CounterApi, stack, table=counters, construct_id="Other")
    build(EventIngest, stack, table=counters, http_api=other.http_api, construct_id="OtherIngest")
    add(stack, api, counters)
    with pytest.raises(RuntimeError, match=rf"invalid route='{route}': expected each route of an API only once"):
        Template.from_stack(stack)


def test_apis_may_have_the_same_routes(stack: Stack, counters: DedupCounterTable) -> None:
    for number in range(2):
        api = build(CounterApi, stack, table=counters, construct_id=f"Api{number}")
        build(EventIngest, stack, table=counters, http_api=api.http_api, construct_id=f"Ingest{number}")
    Template.from_stack(stack).resource_properties_count_is("AWS::ApiGatewayV2::Route", {"RouteKey": "POST /events"}, 2)
