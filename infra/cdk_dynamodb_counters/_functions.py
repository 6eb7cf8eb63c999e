"""Functions that run the runtime's handlers, and their roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cdk_dynamodb_counters._function_settings import FunctionSettings
from cdk_dynamodb_counters._metrics import NAMESPACE
from cdk_dynamodb_counters._nag import acknowledge, acknowledge_resource
from cdk_dynamodb_counters._observed import Observed
from cdk_dynamodb_counters._staging import staged_code
from cdk_dynamodb_counters._synth import check_at_synth
from cdk_dynamodb_counters._validations import oversized_environment

RUNTIMES: Final = (
    lambda_.Runtime.PYTHON_3_11,
    lambda_.Runtime.PYTHON_3_12,
    lambda_.Runtime.PYTHON_3_13,
    lambda_.Runtime.PYTHON_3_14,
)
"""Oldest first; the last one is the default."""


def is_emulated(scope: Construct) -> bool:
    """Whether the app targets an emulator, whose streams have a single shard that batches do not name."""
    return str(scope.node.try_get_context("single_shard_stream")).lower() == "true"


def build_role(scope: Observed, settings: FunctionSettings, construct_id: str, description: str) -> iam.Role:
    """Build a function's role, which may write logs; the function itself adds tracing."""
    role = iam.Role(
        scope, construct_id, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"), description=description
    )
    scope.log_group.grant_write(role)
    settings.grant(role)
    reason = "X-Ray has no resource-level permissions."
    if settings.vpc is not None:
        reason += " Nor has describing network interfaces; only Lambda itself may do that and manage them."
        interfaces = Stack.of(role).format_arn(service="ec2", resource="*", resource_name="*")
        acknowledge_resource(role, reason, interfaces)
    acknowledge(role, "IAM5", reason, "Resource::*")
    return role


def build_function(
    scope: Observed,
    settings: FunctionSettings,
    construct_id: str,
    *,
    description: str,
    handler: str,
    environment: Mapping[str, str],
    role: iam.Role,
    memory_size: int,
    timeout: Duration,
    page: bool = False,
    runtime: lambda_.Runtime | None = None,
    architecture: lambda_.Architecture | None = None,
    tracing: lambda_.Tracing = lambda_.Tracing.ACTIVE,
    log_level: lambda_.ApplicationLogLevel = lambda_.ApplicationLogLevel.INFO,
    recursive_loop: lambda_.RecursiveLoop | None = None,
) -> lambda_.Function:
    """Build a function that runs a handler; synth fails if its environment exceeds Lambda's limit."""
    function = lambda_.Function(
        scope,
        construct_id,
        description=description,
        code=staged_code(page=page),
        handler=f"dynamodb_counters.handlers.{handler}.handler",
        runtime=runtime or RUNTIMES[-1],
        architecture=architecture or lambda_.Architecture.ARM_64,
        memory_size=memory_size,
        timeout=timeout,
        role=role,
        environment={
            **environment,
            "POWERTOOLS_SERVICE_NAME": scope.service_name,
            "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
            "POWERTOOLS_LOG_LEVEL": log_level.value,
        },
        log_group=scope.log_group,
        logging_format=lambda_.LoggingFormat.JSON,
        application_log_level_v2=log_level,
        tracing=tracing,
        vpc=settings.vpc,
        vpc_subnets=settings.vpc_subnets,
        security_groups=settings.security_groups,
        reserved_concurrent_executions=settings.reserved_concurrency,
        environment_encryption=settings.environment_encryption,
        recursive_loop=recursive_loop,
    )
    check_at_synth(scope, lambda: oversized_environment(function))
    return function
