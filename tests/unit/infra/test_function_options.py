"""Network, concurrency, keys and boundary of the functions: each brings the permissions it needs, no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import App, CfnParameter, Environment, NestedStack, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Annotations, Match, Template

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, FunctionOptions, StreamAggregator
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

CONSTRUCTS = (StreamAggregator, EventIngest, CounterApi)


def all_with(stack: Stack, **arguments: Any) -> Template:
    """Synthesize all constructs that have functions, four together, with the same arguments."""
    counters = DedupCounterTable(stack, "Counters")
    for construct in CONSTRUCTS:
        build(construct, stack, table=counters, function_options=FunctionOptions(**arguments))
    return synthesized(stack)


def functions(template: Template) -> list[dict[str, Any]]:
    found = each(template, "AWS::Lambda::Function")
    assert len(found) == 4
    return found


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


def arn(*parts: Any) -> dict[str, Any]:
    """Return an ARN of the stack's partition, account and region, as a template has it."""
    return {"Fn::Join": ["", list(parts)]}


PARTITION, REGION, ACCOUNT = ({"Ref": f"AWS::{name}"} for name in ("Partition", "Region", "AccountId"))


def test_functions_run_in_the_private_subnets_of_a_vpc(stack: Stack) -> None:
    vpc = private_vpc(stack)
    template = all_with(stack, vpc=vpc)
    private = [stack.resolve(subnet.subnet_id) for subnet in vpc.isolated_subnets]
    assert [function["VpcConfig"]["SubnetIds"] for function in functions(template)] == [private] * 4


def test_subnets_and_security_groups_are_those_given(stack: Stack) -> None:
    vpc = private_vpc(stack)
    group = ec2.SecurityGroup(stack, "Group", vpc=vpc)
    chosen = ec2.SubnetSelection(subnets=vpc.isolated_subnets[:1])
    template = all_with(stack, vpc=vpc, vpc_subnets=chosen, security_groups=[group])
    expected = {
        "SubnetIds": [stack.resolve(vpc.isolated_subnets[0].subnet_id)],
        "SecurityGroupIds": [stack.resolve(group.security_group_id)],
    }
    assert [function["VpcConfig"] for function in functions(template)] == [expected] * 4
    template.resource_count_is("AWS::EC2::SecurityGroup", 1)


def test_lambda_may_manage_network_interfaces_and_the_code_may_not(stack: Stack) -> None:
    template = all_with(stack, vpc=private_vpc(stack))
    by_lambda = {"Null": {"lambda:SourceFunctionArn": "true"}}
    anything = arn("arn:", PARTITION, ":ec2:", REGION, ":", ACCOUNT, ":*/*")
    expected = [
        ("ec2:AssignPrivateIpAddresses", anything, by_lambda),
        ("ec2:CreateNetworkInterface", anything, by_lambda),
        ("ec2:DeleteNetworkInterface", anything, by_lambda),
        ("ec2:DescribeNetworkInterfaces", "*", by_lambda),
        ("ec2:DescribeSubnets", "*", by_lambda),
        ("ec2:UnassignPrivateIpAddresses", anything, by_lambda),
    ]
    assert granted(template, "ec2") == sorted(expected * 4, key=str)
    # Lambda checks the permissions when it creates the function: they must exist before it.
    policies = template.find_resources("AWS::IAM::Policy")
    for function in template.find_resources("AWS::Lambda::Function").values():
        assert any(name in policies for name in function["DependsOn"])


def test_functions_without_a_vpc_ask_for_nothing_of_ec2(stack: Stack) -> None:
    template = all_with(stack)
    assert granted(template, "ec2") == []
    assert granted(template, "kms") == []
    for function in functions(template):
        assert function.keys().isdisjoint({"VpcConfig", "KmsKeyArn", "ReservedConcurrentExecutions"})


def test_the_environment_is_encrypted_and_each_function_may_decrypt_it(stack: Stack) -> None:
    key = kms.Key(stack, "Key")
    template = all_with(stack, environment_encryption=key)
    key_arn = stack.resolve(key.key_arn)
    assert [function["KmsKeyArn"] for function in functions(template)] == [key_arn] * 4
    assert granted(template, "kms") == [("kms:Decrypt", key_arn, None)] * 4


def test_each_function_has_its_own_reservation(stack: Stack) -> None:
    template = all_with(stack, reserved_concurrency=5)
    assert [function["ReservedConcurrentExecutions"] for function in functions(template)] == [5] * 4


def logs_policy(template: Template) -> list[dict[str, Any]]:
    """Return what the only key's policy allows to CloudWatch Logs."""
    [key] = each(template, "AWS::KMS::Key")
    return [one for one in key["KeyPolicy"]["Statement"] if "Service" in one["Principal"]]


def test_all_logs_are_encrypted_with_a_key_that_serves_no_other_log_group(stack: Stack) -> None:
    key = kms.Key(stack, "Key")
    template = all_with(stack, log_encryption_key=key)
    groups = each(template, "AWS::Logs::LogGroup")
    assert [group["KmsKeyId"] for group in groups] == [stack.resolve(key.key_arn)] * 5
    prefixes = set()
    for statement in logs_policy(template):
        assert statement["Principal"] == {"Service": arn("logs.", REGION, ".amazonaws.com")}
        assert statement["Action"] == [
            "kms:Decrypt",
            "kms:DescribeKey",
            "kms:Encrypt",
            "kms:GenerateDataKey*",
            "kms:ReEncrypt*",
        ]
        [(context, name)] = statement["Condition"]["ArnLike"].items()
        assert context == "kms:EncryptionContext:aws:logs:arn"
        *start, prefix = name["Fn::Join"][1]
        assert start == ["arn:", PARTITION, ":logs:", REGION, ":", ACCOUNT]
        prefixes.add(prefix)
    # CloudFormation names a group after its stack; access logs have a name of their own.
    assert prefixes == {":log-group:Test-*", ":log-group:/aws/vendedlogs/apis/*"}


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
    assert len(granted(template, "kms")) == 4
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
    for construct, more in ((StreamAggregator, {}), (EventIngest, {"mode": mode}), (CounterApi, {})):
        build(construct, stack, table=counters, function_options=options, **more)
    roles = each(synthesized(stack), "AWS::IAM::Role")
    # In direct mode, one is CDK's own: API Gateway assumes it to send to the queue.
    assert [role.get("PermissionsBoundary") for role in roles] == [stack.resolve(boundary.managed_policy_arn)] * 4


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
def test_what_no_function_can_run_in_is_refused(unfit: str, stack: Stack) -> None:
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


def test_a_vpc_that_is_looked_up_is_taken() -> None:
    stack = Stack(App(), "Test", env=Environment(account="123456789012", region="us-east-1"))
    vpc = ec2.Vpc.from_lookup(stack, "Vpc", is_default=False)
    FunctionOptions(vpc=vpc)
