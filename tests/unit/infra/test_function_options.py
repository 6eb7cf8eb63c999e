"""CDK's options of functions: each brings the permissions it needs, no more."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import CfnParameter, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.assertions import Template
from aws_cdk.aws_lambda import FunctionOptions

import dynamodb_counters
from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator, ThresholdEvents
from cdk_dynamodb_counters._functions import VARIABLES
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.support import PACKED, VIEWS, actions, build, each, new_app, private_vpc, statements, synthesized

CONSTRUCTS = (StreamAggregator, ThresholdEvents, EventIngest, CounterApi)


def all_with(stack: Stack, **arguments: Any) -> Template:
    """Synthesize all constructs that have functions, five together, with the same arguments."""
    counters = DedupCounterTable(stack, "Counters")
    for construct in CONSTRUCTS:
        build(construct, stack, table=counters, function_options=FunctionOptions(**arguments))
    return synthesized(stack)


def granted(template: Template, service: str) -> list[tuple[str, Any, Any]]:
    """Return what roles may do with a service: action, resource, condition."""
    return sorted(
        (
            (action, one["Resource"], one.get("Condition"))
            for one in statements(template)
            for action in actions(one)
            if action.startswith(f"{service}:")
        ),
        key=str,
    )


def test_keys_network_and_log_group_may_be_of_another_stack() -> None:
    app = new_app()
    shared, stack = Stack(app, "Shared"), Stack(app, "Test")
    key, logged = kms.Key(shared, "Key"), logs.LogGroup(shared, "Logs")
    template = all_with(stack, log_group=logged, environment_encryption=key, vpc=private_vpc(shared))
    assert len(granted(template, "kms")) == 5
    assert {str(arn) for _, arn, _ in granted(template, "logs")} == {str(stack.resolve(logged.log_group_arn))}
    template.resource_count_is("AWS::Logs::LogGroup", 2)


@pytest.mark.parametrize("mode", ["validated", "direct"])
def test_a_boundary_holds_for_every_role(mode: str, stack: Stack) -> None:
    boundary = iam.ManagedPolicy(stack, "Boundary", statements=[iam.PolicyStatement(actions=["*"], resources=["*"])])
    counters = DedupCounterTable(stack, "Counters")
    for construct in CONSTRUCTS:
        more = {"mode": mode} if construct is EventIngest else {}
        iam.PermissionsBoundary.of(build(construct, stack, table=counters, **more)).apply(boundary)
    roles = each(synthesized(stack), "AWS::IAM::Role")
    # In direct mode, one is CDK's own: API Gateway assumes it to send to the queue.
    assert [role.get("PermissionsBoundary") for role in roles] == [stack.resolve(boundary.managed_policy_arn)] * 5


@pytest.mark.parametrize(
    "own",
    [
        {"function_name": "counter"},
        {"events": []},
        {"log_retention": logs.RetentionDays.ONE_WEEK},
        {"logging_format": lambda_.LoggingFormat.TEXT},
        {"application_log_level_v2": lambda_.ApplicationLogLevel.WARN},
    ],
    ids=lambda own: next(iter(own)),
)
def test_what_a_construct_chooses_itself_is_refused(own: dict[str, Any], stack: Stack) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^invalid function_options.{next(iter(own))}="):
        build(CounterApi, stack, function_options=FunctionOptions(**own))


def test_a_variable_is_added_unless_handlers_read_it(stack: Stack, counters: DedupCounterTable) -> None:
    build(StreamAggregator, stack, table=counters, function_options=FunctionOptions(environment={"MORE": "yes"}))
    assert each(synthesized(stack), "AWS::Lambda::Function")[0]["Environment"]["Variables"]["MORE"] == "yes"
    for name in VARIABLES:
        wrong = FunctionOptions(environment={"MORE": "yes", name: "other"})
        with pytest.raises(InvalidArgumentError, match=f"^invalid function_options.environment='{name}'"):
            CounterApi(stack, f"Of{name}", table=counters, shown=[VIEWS], function_options=wrong)


def test_all_variables_are_known_that_handlers_read() -> None:
    paths = [
        path for path in Path(dynamodb_counters.__file__).parent.rglob("*.py") if not {"cli", "_dev"} & {*path.parts}
    ]
    reading = re.compile(r'environ(?:\.get\(|\[)"(\w+)"|"(\w+)" in os\.environ')
    names = {name for path in paths for pair in reading.findall(path.read_text()) for name in pair if name}
    assert names - {"AWS_ACCESS_KEY_ID", "PATH"} <= {*VARIABLES}


def test_a_reservation_is_enough_for_the_consumers(stack: Stack, counters: DedupCounterTable) -> None:
    one = FunctionOptions(reserved_concurrent_executions=1)
    with pytest.raises(
        InvalidArgumentError, match=r"^invalid reserved_concurrent_executions=1: expected at least max_concurrency"
    ):
        build(EventIngest, stack, table=counters, event=PACKED, function_options=one)
    later: Any = CfnParameter(stack, "Later", type="Number").value_as_number
    number = FunctionOptions(reserved_concurrent_executions=later)
    build(EventIngest, stack, table=counters, event=PACKED, function_options=number)
    build(EventIngest, stack, table=counters, construct_id="Plain", function_options=one)
