"""Network, concurrency, keys and boundary of the functions: each brings the permissions it needs, no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import App, CfnParameter, Duration, Environment, NestedStack, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Annotations, Match, Template

from cdk_dynamodb_counters import (
    CounterApi,
    DedupCounterTable,
    EventIngest,
    FunctionOptions,
    StreamAggregator,
    ThresholdEvents,
)
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.support import (
    PACKED,
    actions,
    build,
    each,
    new_app,
    new_stack,
    private_vpc,
    statements,
    synthesized,
)

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


def logs_policy(template: Template) -> list[dict[str, Any]]:
    """Return what the only key's policy allows to CloudWatch Logs."""
    [key] = each(template, "AWS::KMS::Key")
    return [one for one in key["KeyPolicy"]["Statement"] if "Service" in one["Principal"]]


@pytest.mark.parametrize("tracing", list(lambda_.Tracing))
def test_functions_are_traced_only_if_asked(tracing: lambda_.Tracing, stack: Stack) -> None:
    """X-Ray bills each trace, and the watch alone leaves 3,000 a month."""
    chosen = {} if tracing == lambda_.Tracing.DISABLED else {"tracing": tracing}
    traced = granted(all_with(stack, **chosen), "xray")
    assert bool(traced) == (tracing != lambda_.Tracing.DISABLED)


def test_a_key_serves_the_logs_of_a_nested_stack_too() -> None:
    stack = new_stack()
    key = kms.Key(stack, "Key")
    options = FunctionOptions(log_encryption_key=key)
    build(StreamAggregator, NestedStack(stack, "Nested"), function_options=options)
    [statement] = logs_policy(synthesized(stack))
    [name] = statement["Condition"]["ArnLike"].values()
    assert name["Fn::Join"][1][-1] == ":log-group:Test-*"


def test_keys_and_network_may_be_of_another_stack() -> None:
    app = new_app()
    shared, stack = Stack(app, "Shared"), Stack(app, "Test")
    key = kms.Key(shared, "Key")
    template = all_with(stack, log_encryption_key=key, environment_encryption=key, vpc=private_vpc(shared))
    assert len(granted(template, "kms")) == 5
    prefixes = [one["Condition"]["ArnLike"].popitem()[1]["Fn::Join"][1][-1] for one in logs_policy(synthesized(shared))]
    assert {*prefixes} == {":log-group:Test-*", ":log-group:/aws/vendedlogs/apis/*"}


def test_a_key_that_was_imported_needs_a_hand(stack: Stack) -> None:
    key = kms.Key.from_key_arn(
        stack, "Key", "arn:aws:kms:us-east-1:123456789012:key/12345678-1234-1234-1234-123456789012"
    )
    build(StreamAggregator, stack, function_options=FunctionOptions(log_encryption_key=key))
    told = Match.string_like_regexp("policy of the imported log_encryption_key must let logs.*named Test-")
    Annotations.from_stack(stack).has_info("/Test/Aggregator", told)


@pytest.mark.parametrize("mode", ["validated", "direct"])
def test_a_boundary_holds_for_every_role(mode: str, stack: Stack) -> None:
    boundary = iam.ManagedPolicy(stack, "Boundary", statements=[iam.PolicyStatement(actions=["*"], resources=["*"])])
    counters, options = DedupCounterTable(stack, "Counters"), FunctionOptions(permissions_boundary=boundary)
    made: tuple[tuple[Any, dict[str, Any]], ...] = (
        (StreamAggregator, {}),
        (ThresholdEvents, {}),
        (EventIngest, {"mode": mode}),
        (CounterApi, {}),
    )
    for construct, more in made:
        build(construct, stack, table=counters, function_options=options, **more)
    roles = each(synthesized(stack), "AWS::IAM::Role")
    # In direct mode, one is CDK's own: API Gateway assumes it to send to the queue.
    assert [role.get("PermissionsBoundary") for role in roles] == [stack.resolve(boundary.managed_policy_arn)] * 5


def _public(stack: Stack) -> dict[str, Any]:
    subnets = [ec2.SubnetConfiguration(name="public", subnet_type=ec2.SubnetType.PUBLIC)]
    return {"vpc": ec2.Vpc(stack, "Vpc", subnet_configuration=subnets, restrict_default_security_group=False)}


def _public_chosen(stack: Stack) -> dict[str, Any]:
    vpc = ec2.Vpc(stack, "Vpc", restrict_default_security_group=False)
    return {"vpc": vpc, "vpc_subnets": ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC)}


def _missing(stack: Stack) -> dict[str, Any]:
    return {
        "vpc": private_vpc(stack),
        "vpc_subnets": ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
    }


UNFIT: dict[str, tuple[str, Callable[[Stack], dict[str, Any]]]] = {
    "only-public": ("vpc", _public),
    "public-chosen": ("vpc_subnets", _public_chosen),
    "no-such-subnets": ("vpc_subnets", _missing),
    "subnets-without-vpc": ("vpc_subnets", lambda _: {"vpc_subnets": ec2.SubnetSelection()}),
    "groups-without-vpc": ("security_groups", lambda _: {"security_groups": []}),
    "no-groups": ("security_groups", lambda stack: {"vpc": private_vpc(stack), "security_groups": []}),
    "wrong-group": ("security_groups", lambda stack: {"vpc": private_vpc(stack), "security_groups": ["sg-1"]}),
    "wrong-subnets": ("vpc_subnets", lambda stack: {"vpc": private_vpc(stack), "vpc_subnets": ["subnet-1"]}),
}


@pytest.mark.parametrize("unfit", UNFIT)
def test_settings_that_no_function_can_run_in_are_refused(unfit: str, stack: Stack) -> None:
    argument, arguments = UNFIT[unfit]
    with pytest.raises(InvalidArgumentError, match=f"^invalid {argument}="):
        FunctionOptions(**arguments(stack))


def test_a_reservation_is_enough_for_the_consumers(stack: Stack, counters: DedupCounterTable) -> None:
    one = FunctionOptions(reserved_concurrency=1)
    with pytest.raises(
        InvalidArgumentError, match=r"^invalid reserved_concurrency=1: expected at least max_concurrency"
    ):
        build(EventIngest, stack, table=counters, event=PACKED, function_options=one)
    later: Any = CfnParameter(stack, "Later", type="Number").value_as_number
    build(
        EventIngest, stack, table=counters, event=PACKED, function_options=FunctionOptions(reserved_concurrency=later)
    )
    build(EventIngest, stack, table=counters, construct_id="Plain", function_options=one)


def test_isolated_subnets_are_warned_of_where_a_function_needs_more_than_endpoints(stack: Stack) -> None:
    vpc, counters = private_vpc(stack), DedupCounterTable(stack, "Counters")
    options = FunctionOptions(vpc=vpc)
    build(StreamAggregator, stack, table=counters, verify_every=Duration.days(1), function_options=options)
    build(ThresholdEvents, stack, table=counters, function_options=options)
    build(EventIngest, stack, table=counters, function_options=options)
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("isolated subnets"))
    assert [message.id for message in found] == ["/Test/Aggregator", "/Test/Crossed"]
    assert "DynamoDB Streams" in str(found[0].entry.data)
    assert "EVENTBRIDGE" in str(found[1].entry.data)


def test_subnets_with_a_way_out_are_not_warned_of(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters")
    options = FunctionOptions(vpc=ec2.Vpc(stack, "Vpc", restrict_default_security_group=False))
    for given in (options, None):
        table = counters if given else DedupCounterTable(stack, "Other")
        names = {"construct_id": f"A{bool(given)}"}, {"construct_id": f"T{bool(given)}"}
        build(StreamAggregator, stack, table=table, verify_every=Duration.days(1), function_options=given, **names[0])
        build(ThresholdEvents, stack, table=table, function_options=given, **names[1])
    Annotations.from_stack(stack).has_no_warning("*", Match.any_value())


def test_a_vpc_that_is_looked_up_is_taken() -> None:
    stack = Stack(App(), "Test", env=Environment(account="123456789012", region="us-east-1"))
    vpc = ec2.Vpc.from_lookup(stack, "Vpc", is_default=False)
    FunctionOptions(vpc=vpc)
