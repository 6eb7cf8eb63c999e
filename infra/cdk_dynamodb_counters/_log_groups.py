"""Log groups, and what lets CloudWatch Logs encrypt them."""

from __future__ import annotations

from aws_cdk import Annotations, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_dynamodb_counters.function_options import FunctionOptions


def deployed_stack(scope: Construct) -> Stack:
    """Return the stack that is deployed: what is in nested stacks has names that begin with its name."""
    stack = Stack.of(scope)
    while stack.nested_stack_parent is not None:
        stack = stack.nested_stack_parent
    return stack


def build_log_group(
    scope: Construct,
    construct_id: str,
    options: FunctionOptions,
    *,
    prefix: str = "",
    name: str = "",
) -> logs.LogGroup:
    """Build a log group named ``prefix`` and ``name``, or else by CloudFormation; with a key, also the key's policy."""
    key = options.log_encryption_key
    if key is not None:
        _allow_encryption(scope, key, prefix or f"{deployed_stack(scope).stack_name}-")
    return logs.LogGroup(
        scope, construct_id, log_group_name=prefix + name or None, retention=options.log_retention, encryption_key=key
    )


def _allow_encryption(scope: Construct, key: kms.IKey, prefix: str) -> None:
    """Let CloudWatch Logs use the key for log groups whose name begins with ``prefix``.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html
    """
    stack = Stack.of(scope)
    # The group's own ARN would be a circle: the group needs the key.
    groups = f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:{prefix}*"
    statement = iam.PolicyStatement(
        principals=[iam.ServicePrincipal(f"logs.{stack.region}.amazonaws.com")],
        actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
        resources=["*"],
        conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
    )
    if not key.add_to_resource_policy(statement, True).statement_added:
        service = f"logs.{stack.region}.amazonaws.com"
        Annotations.of(scope).add_info(
            f"The policy of the imported log_encryption_key must let {service} encrypt log groups named {prefix}*"
        )
