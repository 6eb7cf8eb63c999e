"""A wrong value of any public argument raises an error that names the argument, the value and what is expected."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Any

import pytest
from aws_cdk import CfnParameter, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_events import EventBus
from constructs import Construct

from cdk_dynamodb_counters import DedupCounterTable, EventIngest, ThresholdEvents, runtime_code
from cdk_dynamodb_counters.counter_api import CounterApi, LivePage
from cdk_dynamodb_counters.stream_aggregator import StreamAggregator, WindowedCounter
from dynamodb_counters._declarations import Event, Threshold
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.declared import POPULAR, ROLLING, SITE, TOP, USERS, VIEW, VIEWS
from tests.unit.infra.support import REQUIRED, build, new_stack, specs, synthesized

_SPANNING = Event("span", pk="S#{limit}", sk="T#{time}")
_KNOWN = Threshold("known", TOP, at=[10])
_PAGE = {"title": "Blog", "total": SITE, "top": TOP, "window": ROLLING}


@cache
def _table() -> DedupCounterTable:
    """Return the table of all that is refused: a stack of its own for each would take most of the time."""
    return DedupCounterTable(new_stack(), "Counters")


_NUMBERS = count()


def make(target: Any, wrong: dict[str, Any]) -> None:
    if any(name.startswith("verify_") for name in wrong):
        # Refused when the table has its aggregator already.
        build(target, new_stack(), **wrong)
    elif target in REQUIRED:
        needed: Any = {} if target is DedupCounterTable else {"table": _table()}
        build(target, Construct(Stack.of(_table()), f"Refused{next(_NUMBERS)}"), **needed | wrong)
    else:
        target(**({**_PAGE, **wrong} if target is LivePage else wrong))


PROPS = lambda_.FunctionProps(code=lambda_.Code.from_inline("-"), handler="-", runtime=lambda_.Runtime.PYTHON_3_14)
OBSERVED: dict[str, list[Any]] = {
    "table": [None, "events", dynamodb.TableEncryption.DEFAULT],
    "service_name": ["", ":blog", "blög", "x" * 256, 1, " x"],
    "function_options": [{}, {"memory_size": 512}, lambda_.FunctionOptions, PROPS],
}
ALARMED: dict[str, list[Any]] = {**OBSERVED, "alarm_actions": [None, "topic", [1], ["topic"], [None]]}

WRONG: dict[Any, dict[str, list[Any]]] = {
    DedupCounterTable: {
        "table": ["events", 1, object()],
        "events": [None, VIEW, "view", ["view"], [VIEWS]],
        "removal_policy": ["retain", True, RemovalPolicy.SNAPSHOT],
        "ranking_index": ["yes", 1],
        "sort_key": [None, dynamodb.Attribute(name="other", type=dynamodb.AttributeType.STRING)],
        "dynamo_stream": [dynamodb.StreamViewType.KEYS_ONLY],
        **{name: [None] for name in ("global_secondary_indexes", "local_secondary_indexes", "partition_key")},
        **{name: [None] for name in ("multi_region_consistency", "time_to_live_attribute")},
        "point_in_time_recovery_specification": [None],
    },
    StreamAggregator: {
        **ALARMED,
        "source_table": ["orders", 1, object(), dynamodb.TableEncryption.DEFAULT],
        "aggregates": [None, VIEWS, "views", [ROLLING], ["views"], [None]],
        "batch_size": [0, 10_001, "100", 1.5, True],
        "max_batching_window": [5, "5", Duration.seconds(301), Duration.millis(1500)],
        "quarantine_retention": [90, Duration.days(0), Duration.hours(36), Duration.days(3651)],
        "on_failure_bucket": ["failures", 1],
        "verify_every": [24, "1 day", Duration.minutes(59), Duration.minutes(90), Duration.days(31)],
        "verify_sample": [0, 1.5, "1", True, None],
    },
    ThresholdEvents: {
        **ALARMED,
        "thresholds": [None, [], POPULAR, "popular", [VIEWS], [POPULAR, POPULAR], [replace(POPULAR, aggregate=None)]],
        "event_bus": ["default", "", 0, EventBus],
        "on_failure_bucket": ["failures", 1],
    },
    EventIngest: {
        **ALARMED,
        "event": [None, VIEWS, "view"],
        "authorizer": ["IAM", HttpIamAuthorizer, False],
        "mode": [None, "checked", "DIRECT", True],
        "schema": ["{}", 1, {"type": "no such type"}, {"$ref": "https://example.com/schema.json"}],
        "tenant": ["claims.sub", {}, {"url": 1}, {"": "iam.userId"}, {"url": "claims.sub"}, {"url": "iam.session"}],
        "http_api": ["api", 1, object()],
        "path": ["", "events", "/", "/events/", "/{proxy+}", None, "/a b"],
        "allow_origins": ["*", None, ["example.com"], [1], ["https://example.com/path"]],
        "throttle_rate": [0, -1, "10", 10_001, 1.5, True],
        "throttle_burst": [0, 5_001],
        "access_log": [None, 1, "no"],
        "max_body_bytes": [0, 5_000_001, None, "1"],
        "batch_size": [0, 10_001, "1"],
        "max_batching_window": [5, Duration.seconds(301)],
        "max_concurrency": [0, 1, 1001, 2.5, "2", True],
    },
    CounterApi: {
        **OBSERVED,
        "shown": [None, [], VIEWS, ["views"], [VIEW], [VIEWS, VIEWS]],
        "events": [None, VIEW, "view", ["view"], [VIEWS], [VIEW, VIEW], [replace(VIEW, name="views")], [_SPANNING]],
        "authorizer": ["IAM", HttpIamAuthorizer, False],
        "tenant": ["iam.userId", {}, ["url"], {"url": "iam"}, {"url": "sub"}, {"customer": "iam.userId"}],
        "page": ["page", True, LivePage(title="Blog", total=SITE, top=TOP, window=ROLLING)],
        "cache_age": [5, Duration.days(2), Duration.millis(1500)],
        "allow_origins": ["*", None, ["example.com"]],
        "throttle_rate": [0, 10_001],
        "throttle_burst": [0, 5_001],
        "access_log": [None, 1, "no"],
    },
    LivePage: {
        "title": ["", " ", None, 1],
        "total": [None, "site", VIEWS, TOP],
        "top": [None, "views", VIEWS, SITE],
        "window": [None, VIEWS, "rolling"],
        "threshold": [VIEWS, POPULAR, replace(_KNOWN, aggregate=None)],
        "active": [VIEWS, "users", replace(USERS, by="url")],
        "beacon": ["url", {"url": 1}, [1]],
        "beacon_path": ["events", "/", None],
    },
    WindowedCounter: {"table": [None, "events"], "window": [None, VIEWS, "rolling", Duration.hours(24)]},
    runtime_code: {"prefix": [None, 1, "..", "../elsewhere", "/python", ".hidden", "a/b"]},
}
OF_CDK = {
    *("scope", "construct_id", "deletion_protection", "point_in_time_recovery", "encryption", "warm_throughput"),
    *("billing", "props"),
}
"""Arguments of which jsii refuses a value of another type by name."""

CASES = [
    pytest.param(target, argument, value, id=f"{target.__name__}-{argument}-{index}")
    for target, arguments in WRONG.items()
    for argument, values in arguments.items()
    for index, value in enumerate(values)
]


@pytest.mark.parametrize(("target", "argument", "value"), CASES)
def test_wrong_value_is_refused_by_name(target: Any, argument: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        make(target, {argument: value})
    assert refused.value.argument == argument
    assert len(refused.value.expected) > 3
    assert str(refused.value).startswith(f"invalid {argument}=")


@pytest.mark.parametrize("target", WRONG)
def test_no_public_argument_is_left_out(target: Any) -> None:
    callable_ = target if inspect.isfunction(target) else target.__init__
    public = set(inspect.signature(callable_).parameters) - {"self"}
    assert public <= {*WRONG[target]} | OF_CDK


def test_durations_known_at_deployment_reach_the_functions(stack: Stack, counters: DedupCounterTable) -> None:
    number = CfnParameter(stack, "Number", type="Number").value_as_number
    build(StreamAggregator, stack, table=counters, quarantine_retention=Duration.days(number))
    build(CounterApi, stack, table=counters, cache_age=Duration.seconds(number))
    variables: dict[str, Any] = {}
    for function in specs(synthesized(stack), "AWS::Lambda::Function"):
        variables |= function["Environment"]["Variables"]
    assert variables["QUARANTINE_RETENTION_DAYS"] == {"Ref": "Number"}
    assert variables["CACHE_CONTROL"] == {"Fn::Join": ["", ["private, max-age=", {"Ref": "Number"}]]}
