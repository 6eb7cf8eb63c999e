"""Functions: CDK's options bring the permissions they need, no more; each construct has a name of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import NestedStack, Stack, Stage
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk.aws_lambda import FunctionOptions

import dynamodb_counters
from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator, ThresholdEvents
from cdk_dynamodb_counters._functions import VARIABLES
from tests.unit.infra.support import actions, build, each, new_app, private_vpc, statements, synthesized

CONSTRUCTS = (StreamAggregator, ThresholdEvents, EventIngest, CounterApi)


def test_keys_network_and_log_group_may_be_of_another_stack() -> None:
    app = new_app()
    shared, stack = Stack(app, "Shared"), Stack(app, "Test")
    key, logged = kms.Key(shared, "Key"), logs.LogGroup(shared, "Logs")
    options = FunctionOptions(log_group=logged, environment_encryption=key, vpc=private_vpc(shared))
    counters = DedupCounterTable(stack, "Counters")
    for construct in CONSTRUCTS:
        build(construct, stack, table=counters, function_options=options)
    template = synthesized(stack)
    granted = [(action, one["Resource"]) for one in statements(template) for action in actions(one)]
    assert sum(action.startswith("kms:") for action, _ in granted) == 5
    own = stack.resolve(logged.log_group_arn)
    assert [resource for action, resource in granted if action.startswith("logs:") and resource != own] == []
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


def test_a_variable_is_added(stack: Stack, counters: DedupCounterTable) -> None:
    build(StreamAggregator, stack, table=counters, function_options=FunctionOptions(environment={"MORE": "yes"}))
    assert each(synthesized(stack), "AWS::Lambda::Function")[0]["Environment"]["Variables"]["MORE"] == "yes"


def test_all_variables_are_known_that_handlers_read() -> None:
    paths = [
        path for path in Path(dynamodb_counters.__file__).parent.rglob("*.py") if not {"cli", "_dev"} & {*path.parts}
    ]
    reading = re.compile(r'environ(?:\.get\(|\[)"(\w+)"|"(\w+)" in os\.environ')
    names = {name for path in paths for pair in reading.findall(path.read_text()) for name in pair if name}
    assert names - {"AWS_ACCESS_KEY_ID", "PATH"} <= {*VARIABLES}


@pytest.mark.parametrize("construct", [StreamAggregator, CounterApi])
def test_a_memory_of_nothing_is_no_default(stack: Stack, counters: DedupCounterTable, construct: Any) -> None:
    build(construct, stack, table=counters, function_options=FunctionOptions(memory_size=0))
    assert {function["MemorySize"] for function in each(synthesized(stack), "AWS::Lambda::Function")} == {0}


_LONGEST = "x" * (255 - len("Test/"))
_REFUSED = ("Zähler", "Zöhler", "x" * 250 + "a", "x" * 250 + "b", "日本", "東京")


def test_a_stage_and_a_nested_stack_are_named_as_deployed() -> None:
    stack = Stack(Stage(new_app(), "Dev"), "Counters")
    nested = NestedStack(stack, "Nested")
    assert build(StreamAggregator, nested).service_name == "Dev-Counters/Nested/Aggregator"


def test_a_name_that_cloudwatch_would_refuse_is_made_one_it_takes(stack: Stack, counters: DedupCounterTable) -> None:
    made = [build(CounterApi, stack, construct_id=name, table=counters).service_name for name in (*_REFUSED, _LONGEST)]
    assert made.pop() == f"Test/{_LONGEST}"
    assert len({*made}) == len(_REFUSED)
    assert [name for name in made if not re.fullmatch(r"[\x20-\x7e]{1,255}", name)] == []
