"""The HTTP constructs: how long a queue keeps messages, what is public, and whose claims are whose fields."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from aws_cdk import CfnParameter, Duration, Stack
from aws_cdk.assertions import Annotations, Match
from aws_cdk.aws_apigatewayv2 import HttpNoneAuthorizer
from aws_cdk.aws_lambda import FunctionOptions

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest
from dynamodb_counters import Ranks
from simulation.queue.sqs import HIDDEN_SECONDS, KEPT_SECONDS, MOST_BYTES, MOST_RECEIVES
from tests.unit.handlers.test_ingest_queue import World, view
from tests.unit.infra.declared import JOB, JOBS, PAGE, USERS, VIEW
from tests.unit.infra.place import AUTHORIZERS, Place
from tests.unit.infra.support import build, declared, new_stack, properties, specs, synthesized


def _queues(stack: Stack | EventIngest) -> tuple[Any, Any]:
    """Return the queue, and that of its dead letters."""
    dead_letters, queue = sorted(specs(synthesized(stack), "AWS::SQS::Queue"), key=lambda spec: "RedrivePolicy" in spec)
    return queue, dead_letters


def test_the_simulated_queue_is_that_of_the_template(stack: Stack) -> None:
    # What becomes of its messages: tests/exactly_once/test_contention.py.
    build(EventIngest, stack)
    queue, _ = _queues(stack)
    assert (queue["VisibilityTimeout"], queue["MessageRetentionPeriod"]) == (HIDDEN_SECONDS, KEPT_SECONDS)
    assert (queue["RedrivePolicy"]["maxReceiveCount"], queue["MaximumMessageSize"]) == (MOST_RECEIVES, MOST_BYTES)


_DAYS = timedelta(days=1)


@pytest.mark.parametrize(
    ("retention", "seconds", "window", "period", "dead"),
    [
        (None, 60, 1, 4 * 86_400, 14 * 86_400),
        (30 * _DAYS, 60, 1, 4 * 86_400, 14 * 86_400),
        (7 * _DAYS, 43, 1, 4 * 86_400, 7 * 86_400),
        (_DAYS, 44, 1, 86_400, 2 * 86_400),
        (timedelta(minutes=15), 60, 1, 2407, 86_400 + 2407),
        (timedelta(seconds=1.5), 60, 1, 2407, 86_400 + 2407),
        (timedelta(hours=12), 900, 300, 43_200, 129_600),
        (timedelta(hours=1), 900, 300, 38_000, 124_400),
        (timedelta(hours=1), 5, 1, 3600, 90_000),
    ],
)
def test_messages_are_kept_as_long_as_their_event_or_five_receives_take(
    retention: timedelta | None, seconds: int, window: int, period: int, dead: int
) -> None:
    # What is refused for long becomes a dead letter late, and before it expires; a dead letter keeps its age.
    ingest = build(
        EventIngest,
        new_stack(),
        event=replace(VIEW, retention=retention),
        function_options=FunctionOptions(timeout=Duration.seconds(seconds)),
        max_batching_window=Duration.seconds(window),
    )
    queue, dead_letters = _queues(ingest)
    assert (queue["MessageRetentionPeriod"], dead_letters["MessageRetentionPeriod"]) == (period, dead)
    tried = queue["VisibilityTimeout"] * queue["RedrivePolicy"]["maxReceiveCount"]
    assert 0.6 * period < tried <= 0.75 * period
    assert queue["RedrivePolicy"]["maxReceiveCount"] >= 5
    assert queue["VisibilityTimeout"] >= 6 * seconds + window


def test_a_public_endpoint_is_warned_of(stack: Stack, counters: DedupCounterTable) -> None:
    for construct in (CounterApi, EventIngest):
        build(construct, stack, table=counters, authorizer=HttpNoneAuthorizer())
    assert {route["AuthorizationType"] for route in specs(synthesized(stack), "AWS::ApiGatewayV2::Route")} == {"NONE"}
    assert len(Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("The endpoint is public"))) == 2


def test_a_window_known_at_deployment_is_taken_for_the_longest(stack: Stack, counters: DedupCounterTable) -> None:
    window = Duration.seconds(CfnParameter(stack, "Window", type="Number").value_as_number)
    build(EventIngest, stack, table=counters, max_batching_window=window)
    assert {queue.get("VisibilityTimeout") for queue in specs(synthesized(stack), "AWS::SQS::Queue")} == {None, 660}


def test_neither_items_of_each_member_nor_all_digits_are_served(stack: Stack) -> None:
    build(CounterApi, stack, shown=[USERS, Ranks("board", VIEW, score="ms", least=0, most=9_999)])
    assert declared(synthesized(stack)) == ["board", "users"]


@pytest.mark.parametrize(
    ("more", "settings"),
    [
        ({}, {"last": "30d", "words": "30 days"}),
        ({"longest": timedelta(days=7)}, {"last": "7d", "words": "7 days"}),
        ({"precision": timedelta(hours=1), "longest": timedelta(hours=30)}, {"last": "30h", "words": "30 hours"}),
        ({"precision": timedelta(minutes=1)}, {"last": "30m", "words": "30 minutes"}),
    ],
)
def test_the_page_shows_members_of_thirty_days_or_of_the_longest_span(more: Any, settings: dict[str, str]) -> None:
    page = replace(PAGE, active=replace(USERS, **more))
    assert json.loads(page._settings())["active"] == {"name": "users", **settings}


CLAIMS = [("jwt", "claims.https://example.com/tenant"), ("pool", "claims.custom:tenant")]


@pytest.mark.parametrize(("kind", "path"), [*CLAIMS, ("own", "lambda.customer"), ("iam", "iam.accountId")])
def test_functions_know_which_field_is_which_claim(kind: str, path: str) -> None:
    place = Place()
    stack, authorizer = place.stack, AUTHORIZERS[kind](place)
    arguments = {"table": place.counters, "authorizer": authorizer, "tenant": {"customer": path}}
    api = build(CounterApi, stack, shown=[JOBS], events=[JOB], **arguments)
    build(EventIngest, stack, event=JOB, http_api=api.http_api, **arguments)
    functions = [spec for spec in specs(synthesized(stack), "AWS::Lambda::Function") if "Environment" in spec]
    texts = {spec["Handler"].split(".")[-2]: spec["Environment"]["Variables"].get("TENANT") for spec in functions}
    # The queue's consumer knows no caller.
    assert texts.pop("ingest_queue") is None
    bound = {"customer": path}
    assert {name: json.loads(text) for name, text in texts.items()} == {"api": bound, "ingest_http": bound}


def test_the_consumer_takes_what_the_integration_sends() -> None:
    """Direct mode: messages are what the template's integration makes of requests."""
    template = synthesized(build(EventIngest, new_stack(), mode="direct"))
    integration = properties(template, "AWS::ApiGatewayV2::Integration")
    assert integration["IntegrationSubtype"] == "SQS-SendMessage"
    parameters = integration["RequestParameters"]
    assert parameters["QueueUrl"]["Ref"] in template.find_resources("AWS::SQS::Queue")

    world = World()
    views = [view('/é "#') | {"clientId": f"c{number}"} for number in range(3)]
    bodies = [json.dumps(views[0]), json.dumps(views, indent=2), json.dumps(views[1], ensure_ascii=False)]
    bodies += ["no JSON", json.dumps([{"url": "/incomplete"}]), "[]"]
    # API Gateway documents that parts of the request go where the integration's parameters say.
    moment = str(int(world.clock()) - 5)
    attributes = json.loads(parameters["MessageAttributes"].replace("${context.requestTimeEpoch}", moment))
    for body in bodies:
        world.queue.send({"$request.body": body}[parameters["MessageBody"]], attributes)
    assert all(message.is_done for message in world.deliver())
    dead = world.dead.messages()
    assert {letter.body for letter in dead} == {bodies[3], bodies[4]}
    assert {letter.attributes["taken"]["StringValue"] for letter in dead} == {moment}
    assert world.urls() == ['/é "#'] * 3
