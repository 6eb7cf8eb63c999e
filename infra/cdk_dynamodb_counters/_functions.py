"""Functions that run the runtime's handlers, and their roles."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_dynamodb_counters._metrics import NAMESPACE
from cdk_dynamodb_counters._nag import acknowledge
from cdk_dynamodb_counters._runtimes import RUNTIMES
from cdk_dynamodb_counters._validations import EnvironmentSize


def build_role(scope: Construct, construct_id: str, log_group: logs.ILogGroup, description: str) -> iam.Role:
    """Build the role of a function: logs and, once it is traced, traces."""
    role = iam.Role(
        scope, construct_id, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"), description=description
    )
    log_group.grant_write(role)
    acknowledge(role, "IAM5", "X-Ray takes no resource.", "Resource::*")
    return role


def build_function(
    scope: Construct,
    construct_id: str,
    *,
    description: str,
    handler: str,
    code: lambda_.Code,
    environment: Mapping[str, str],
    service_name: str,
    role: iam.Role,
    log_group: logs.ILogGroup,
    memory_size: int,
    timeout: Duration,
    runtime: lambda_.Runtime = RUNTIMES[-1],
    architecture: lambda_.Architecture | None = None,
    tracing: lambda_.Tracing = lambda_.Tracing.ACTIVE,
    log_level: lambda_.ApplicationLogLevel = lambda_.ApplicationLogLevel.INFO,
) -> lambda_.Function:
    """Build a function that runs a handler, if what the function is told fits into its environment."""
    function = lambda_.Function(
        scope,
        construct_id,
        description=description,
        code=code,
        handler=f"dynamodb_counters.handlers.{handler}.handler",
        runtime=runtime,
        architecture=lambda_.Architecture.ARM_64 if architecture is None else architecture,
        memory_size=memory_size,
        timeout=timeout,
        role=role,
        environment={
            **environment,
            "POWERTOOLS_SERVICE_NAME": service_name,
            "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
            "POWERTOOLS_LOG_LEVEL": log_level.value,
        },
        log_group=log_group,
        logging_format=lambda_.LoggingFormat.JSON,
        application_log_level_v2=log_level,
        tracing=tracing,
    )
    scope.node.add_validation(EnvironmentSize(function))
    return function
