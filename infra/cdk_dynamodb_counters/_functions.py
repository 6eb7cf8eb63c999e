"""Functions that run the runtime's handlers, and their roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cdk_dynamodb_counters._metrics import NAMESPACE
from cdk_dynamodb_counters._observed import Observed
from cdk_dynamodb_counters._staging import staged_code
from cdk_dynamodb_counters._synth import check_at_synth
from cdk_dynamodb_counters._validations import oversized_environment
from cdk_dynamodb_counters.function_options import RUNTIMES

# https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
_DESCRIBE: Final = ("ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets")
_MANAGE: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
)


def is_emulated(scope: Construct) -> bool:
    """Whether the app targets an emulator, whose streams have a single shard that batches do not name."""
    return str(scope.node.try_get_context("single_shard_stream")).lower() == "true"


def build_role(scope: Observed, construct_id: str, description: str) -> iam.Role:
    """Build a function's role, which may do what its options need and write logs; the function adds tracing."""
    options = scope.function_options
    role = iam.Role(
        scope, construct_id, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"), description=description
    )
    scope.log_group.grant_write(role)
    if options.vpc is not None:
        # Only Lambda itself may: calls of the function's code name the function.
        # https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
        by_lambda = {"Null": {"lambda:SourceFunctionArn": "true"}}
        # Lambda documents no narrower resource than this for deleting an interface, and none for describing.
        interfaces = Stack.of(role).format_arn(service="ec2", resource="*", resource_name="*")
        for actions, resource in ((_DESCRIBE, "*"), (_MANAGE, interfaces)):
            role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=[resource], conditions=by_lambda))
    if options.environment_encryption is not None:
        options.environment_encryption.grant_decrypt(role)
    return role


def build_function(
    scope: Observed,
    construct_id: str,
    *,
    description: str,
    handler: str,
    environment: Mapping[str, str],
    role: iam.Role,
    memory_size: int,
    timeout: Duration,
    page: bool = False,
) -> lambda_.Function:
    """Build a function that runs a handler; synth fails if its environment exceeds Lambda's limit."""
    options = scope.function_options
    function = lambda_.Function(
        scope,
        construct_id,
        description=description,
        code=staged_code(page=page),
        handler=f"dynamodb_counters.handlers.{handler}.handler",
        runtime=options.runtime or RUNTIMES[-1],
        architecture=options.architecture or lambda_.Architecture.ARM_64,
        memory_size=memory_size,
        timeout=timeout,
        role=role,
        environment={
            **environment,
            "POWERTOOLS_SERVICE_NAME": scope.service_name,
            "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
            "POWERTOOLS_LOG_LEVEL": options.log_level.value,
        },
        log_group=scope.log_group,
        logging_format=lambda_.LoggingFormat.JSON,
        application_log_level_v2=options.log_level,
        tracing=options.tracing,
        vpc=options.vpc,
        vpc_subnets=options.vpc_subnets,
        security_groups=options.security_groups,
        reserved_concurrent_executions=options.reserved_concurrency,
        environment_encryption=options.environment_encryption,
    )
    check_at_synth(scope, lambda: oversized_environment(function))
    return function
