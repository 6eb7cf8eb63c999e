"""The HTTP constructs: no endpoint is public by accident, roles are narrow, renaming loses nothing."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import sys
import textwrap
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from aws_cdk import CfnParameter, Duration, Stack
from aws_cdk.assertions import Annotations, Match, Template
from aws_cdk.aws_apigatewayv2 import HttpMethod, HttpNoneAuthorizer
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_lambda import FunctionOptions

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, LivePage
from dynamodb_counters import ActiveMembers, Extremes, Percentiles
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters.errors import InvalidArgumentError
from simulation.aws.queue_messages import HIDDEN_SECONDS, KEPT_SECONDS, MOST_BYTES, MOST_RECEIVES
from simulation.queue.sqs import Queue
from tests.unit.handlers.queue_world import World, view
from tests.unit.infra.support import (
    PROJECT,
    ROLLING,
    SITE,
    TOP,
    VIEW,
    actions,
    build,
    each,
    new_stack,
    statements,
    synthesized,
)

POST = HttpMethod.POST
_PAGE = (PROJECT / "docs" / "threat-model.md").read_text()
_ORIGIN, _SIGNING_KEY = "from-cloudfront", "signs-tokens"
_INGEST_PAGE = PROJECT / "docs" / "constructs" / "event-ingest.md"
OLD = "arn:aws:sqs:us-east-1:123456789012:Blog-IngestQueue"
USERS = ActiveMembers("users", VIEW, member="clientId", time="time")
PAGE = LivePage(title="Blog", total=SITE, top=TOP, window=ROLLING, active=USERS)


def http_stack(authorizer: Any, **ingest: Any) -> Stack:
    stack = new_stack()
    counters = build(DedupCounterTable, stack)
    chosen = {} if authorizer is None else {"authorizer": authorizer}
    build(CounterApi, stack, table=counters, **chosen)
    build(EventIngest, stack, table=counters, **chosen, **ingest)
    return stack


def kinds(template: Template) -> set[str]:
    routes = each(template, "AWS::ApiGatewayV2::Route")
    assert len(routes) == 4
    return {route["AuthorizationType"] for route in routes}


def _queues(stack: Stack | EventIngest) -> tuple[Any, Any]:
    """The queue, and that of its dead letters."""
    dead_letters, queue = sorted(each(synthesized(stack), "AWS::SQS::Queue"), key=lambda one: "RedrivePolicy" in one)
    return queue, dead_letters


def test_the_simulated_queue_is_that_of_the_template(stack: Stack) -> None:
    """What becomes of its messages: tests/exactly_once/test_contention.py."""
    build(EventIngest, stack)
    queue, _ = _queues(stack)
    assert (queue["VisibilityTimeout"], queue["MessageRetentionPeriod"]) == (HIDDEN_SECONDS, KEPT_SECONDS)
    assert (queue["RedrivePolicy"]["maxReceiveCount"], queue["MaximumMessageSize"]) == (MOST_RECEIVES, MOST_BYTES)


@pytest.mark.parametrize(("seconds", "window"), [(5, 1), (43, 1), (44, 1), (60, 1), (300, 1), (900, 300)])
@pytest.mark.parametrize(
    "retention",
    [
        None,
        timedelta(days=4),
        timedelta(days=1),
        timedelta(hours=12),
        timedelta(hours=1),
        timedelta(minutes=15),
        timedelta(minutes=1),
    ],
)
def test_what_is_refused_for_long_becomes_a_dead_letter_late_and_before_it_expires(
    seconds: int, window: int, retention: timedelta | None
) -> None:
    ingest = build(
        EventIngest,
        new_stack(),
        event=replace(VIEW, retention=retention),
        function_options=FunctionOptions(timeout=Duration.seconds(seconds)),
        max_batching_window=Duration.seconds(window),
    )
    queue, dead_letters = _queues(ingest)
    tried = queue["VisibilityTimeout"] * queue["RedrivePolicy"]["maxReceiveCount"]
    assert 0.6 * queue["MessageRetentionPeriod"] < tried <= 0.75 * queue["MessageRetentionPeriod"]
    assert queue["RedrivePolicy"]["maxReceiveCount"] >= 5
    assert queue["VisibilityTimeout"] >= 6 * seconds + window
    # A dead letter keeps its age.
    assert queue["MessageRetentionPeriod"] < dead_letters["MessageRetentionPeriod"] <= 14 * 86_400


def test_a_public_endpoint_is_warned_of() -> None:
    stack = http_stack(HttpNoneAuthorizer())
    assert kinds(synthesized(stack)) == {"NONE"}
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("The endpoint is public"))
    assert len(found) == 2


@pytest.mark.parametrize(
    ("retention", "kept", "dead"),
    [
        (None, 4 * 86_400, 14 * 86_400),
        (timedelta(days=30), 4 * 86_400, 14 * 86_400),
        (timedelta(days=7), 4 * 86_400, 7 * 86_400),
        (timedelta(days=1), 86_400, 2 * 86_400),
        (timedelta(minutes=15), 2407, 86_400 + 2407),
        (timedelta(seconds=1.5), 2407, 86_400 + 2407),
    ],
)
def test_messages_are_kept_as_long_as_their_event_or_five_receives_take(
    retention: timedelta | None, kept: int, dead: int
) -> None:
    queue, dead_letters = _queues(build(EventIngest, new_stack(), event=replace(VIEW, retention=retention)))
    assert (queue["MessageRetentionPeriod"], dead_letters["MessageRetentionPeriod"]) == (kept, dead)


def test_a_window_known_at_deployment_is_taken_for_the_longest(stack: Stack, counters: DedupCounterTable) -> None:
    window = Duration.seconds(CfnParameter(stack, "Window", type="Number").value_as_number)
    build(EventIngest, stack, table=counters, max_batching_window=window)
    assert {queue.get("VisibilityTimeout") for queue in each(synthesized(stack), "AWS::SQS::Queue")} == {None, 660}


@pytest.mark.parametrize("path", ["/events", "/v1/batch"])
def test_a_route_that_an_api_has_twice_is_refused(path: str, stack: Stack, counters: DedupCounterTable) -> None:
    api = build(CounterApi, stack, table=counters)
    build(EventIngest, stack, table=counters, http_api=api.http_api)
    with pytest.raises(InvalidArgumentError, match=rf"^invalid path='{path}': expected a path that no other construct"):
        build(EventIngest, stack, table=counters, http_api=api.http_api, path=path, construct_id="Another")


def test_apis_may_have_the_same_routes(stack: Stack, counters: DedupCounterTable) -> None:
    for number in range(2):
        api = build(CounterApi, stack, table=counters, construct_id=f"Api{number}")
        build(EventIngest, stack, table=counters, http_api=api.http_api, construct_id=f"Ingest{number}")
    Template.from_stack(stack).resource_properties_count_is("AWS::ApiGatewayV2::Route", {"RouteKey": "POST /events"}, 2)


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    """The names of the page's last example."""
    *_, code = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)
    names: dict[str, Any] = {"self": new_stack(region="us-east-1")}
    exec(code, names)
    return names


@pytest.fixture
def authorize(example: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The authorizer's handler, with its secrets."""

    def get_secret_value(SecretId: str) -> dict[str, str]:  # noqa: N803 - as the SDK calls it
        return {"SecretString": SecretId}

    client = SimpleNamespace(get_secret_value=get_secret_value)
    monkeypatch.setitem(sys.modules, "boto3", SimpleNamespace(client=lambda _: client))
    monkeypatch.setenv("ORIGIN", _ORIGIN)
    monkeypatch.setenv("SIGNING_KEY", _SIGNING_KEY)
    function: dict[str, Any] = {}
    exec(example["AUTHORIZER"], function)
    return lambda token, origin: function["handler"](
        {"headers": {"authorization": token, "x-origin-verify": origin}}, None
    )


def token(customer: str, key: str = _SIGNING_KEY) -> str:
    return f"{customer}.{hmac.new(key.encode(), customer.encode(), hashlib.sha256).hexdigest()}"


@pytest.mark.parametrize("customer", ["c1", "with.dots.", "ümlaut", "a#b"])
def test_a_customer_is_known_by_a_token(authorize: Any, customer: str) -> None:
    assert authorize(token(customer), _ORIGIN) == {"isAuthorized": True, "context": {"customer": customer}}


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        (token("c1"), "guessed"),
        (token("c1"), ""),
        (token("c1", "guessed"), _ORIGIN),
        (token("c1").replace("c1", "c2"), _ORIGIN),
        ("c1", _ORIGIN),
        ("c1.", _ORIGIN),
        ("", _ORIGIN),
        (".", _ORIGIN),
        ("c1.ü", _ORIGIN),
        (token("c1"), "ü"),
    ],
)
def test_other_requests_are_not_authorized(authorize: Any, given: str, origin: str) -> None:
    assert authorize(given, origin)["isAuthorized"] is False


def test_step_1_lets_the_new_consumer_read_the_old_queue(stack: Stack) -> None:
    [code] = re.findall(
        r"(?ms)^1\. .*?```python\n(.*?)```", _INGEST_PAGE.read_text().partition("## Renaming and moving")[2]
    )
    counters = DedupCounterTable(stack, "Counters")
    names: dict[str, Any] = {"self": stack, "counters": counters, "VIEW": VIEW}
    exec(textwrap.dedent(code), names | {"EventIngest": EventIngest, "HttpIamAuthorizer": HttpIamAuthorizer})
    template = synthesized(stack)
    new, old = sorted(each(template, "AWS::Lambda::EventSourceMapping"), key=lambda one: one["EventSourceArn"] == OLD)
    assert old["EventSourceArn"] == OLD
    for name in ("FunctionName", "FunctionResponseTypes"):
        assert old[name] == new[name]
    allowed = {action for one in statements(template) if one["Resource"] == OLD for action in actions(one)}
    assert {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"} <= allowed


def test_step_2_empties_the_old_queue_into_the_table_and_the_new_queues() -> None:
    world = World()
    old, new = Queue(world.clock), world.queue
    world.queue = old
    for message in (view("/a"), view("/b"), {"url": "/c"}):
        world.post(message)
    world.deliver()
    world.queue = new
    world.post(view("/a"))
    world.deliver()
    assert old.receive(10) == []
    assert world.urls() == ["/a", "/b"]
    assert len(world.dead.receive(10)) == 1


def variables(stack: Stack) -> dict[str, str]:
    functions = synthesized(stack).find_resources("AWS::Lambda::Function").values()
    settings = [one["Properties"].get("Environment", {}).get("Variables", {}) for one in functions]
    [found] = [one for one in settings if "CACHE_CONTROL" in one]
    return dict(found)


def test_the_items_of_each_member_are_not_served() -> None:
    build(CounterApi, stack := new_stack(), shown=[USERS])
    assert [one.name for one in decode(variables(stack)["DECLARATIONS"])] == ["users"]


@pytest.mark.parametrize(
    ("more", "settings"),
    [
        ({}, {"last": "30d", "words": "30 days"}),
        ({"longest": timedelta(days=7)}, {"last": "7d", "words": "7 days"}),
        ({"precision": timedelta(hours=1), "longest": timedelta(hours=30)}, {"last": "30h", "words": "30 hours"}),
        ({"precision": timedelta(minutes=1)}, {"last": "30m", "words": "30 minutes"}),
    ],
)
def test_the_page_shows_members_of_thirty_days_or_of_the_longest_span(
    more: dict[str, Any], settings: dict[str, str]
) -> None:
    users = replace(USERS, **more)
    page, stack = replace(PAGE, active=users), new_stack()
    build(CounterApi, stack, shown=[SITE, TOP, ROLLING, users], authorizer=HttpNoneAuthorizer(), page=page)
    assert json.loads(variables(stack)["PAGE"])["active"] == {"name": "users", **settings}


def test_the_members_of_the_page_are_shown() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"^invalid page='users': expected only declarations listed in shown"
    ):
        build(CounterApi, new_stack(), shown=[SITE, TOP, ROLLING], authorizer=HttpNoneAuthorizer(), page=PAGE)


@pytest.mark.parametrize(
    "declared",
    [
        Percentiles("sizes", VIEW, by="p", attribute="bytes"),
        Extremes("latest", VIEW, by="order", attribute="time"),
        ActiveMembers("users", VIEW, by="last", member="clientId", time="time"),
        replace(SITE, pk="NEXT#{next}"),
        replace(ROLLING, pk="LAST#{last}"),
    ],
    ids=["percentiles", "extremes", "members", "aggregate", "window"],
)
def test_a_field_named_like_a_parameter_of_its_read_is_refused(declared: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^invalid shown=.*which are request parameters"):
        build(CounterApi, new_stack(), shown=[declared])


def test_a_field_that_is_only_shown_limits_no_tenant_and_may_have_any_name() -> None:
    latest = Extremes("latest", VIEW, by="url", attribute="time", show="count")
    build(CounterApi, new_stack(), shown=[latest])
    shown = replace(latest, by=(), show="url")
    with pytest.raises(InvalidArgumentError, match=r"^invalid tenant='url': expected a field of 'latest'"):
        build(CounterApi, new_stack(), shown=[shown], tenant={"url": "iam.userId"})
