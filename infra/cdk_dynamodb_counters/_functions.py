"""Constructs that run the runtime's handlers: their functions, roles and log groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, cast

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_dynamodb_counters._arguments import (
    MAX_SERVICE_NAME,
    is_service_name,
    require_duration,
    require_interface,
    require_sequence,
    require_service_name,
)
from cdk_dynamodb_counters._metrics import NAMESPACE, RuntimeMetrics
from cdk_dynamodb_counters._staging import staged_code
from cdk_dynamodb_counters._synth import check_at_synth
from cdk_dynamodb_counters._validations import oversized_environment
from dynamodb_counters.errors import InvalidArgumentError

# Metrics are log lines without a level, which Lambda treats as INFO: a higher level would drop them.
# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
_LOG_LEVELS: Final = (lambda_.ApplicationLogLevel.INFO, lambda_.ApplicationLogLevel.DEBUG)
_OWN: Final = {
    "application_log_level": "None; pass application_log_level_v2",
    "events": "None: records that another source delivers would be lost",
    "function_name": "None: a construct may have several functions",
    "log_format": "None: logs are JSON",
    "log_retention": "None; pass a log_group",
    "logging_format": "None: logs are JSON",
    "role": "None: each function has a role of its own",
}
"""Options that a construct chooses itself."""

# https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
_DESCRIBE: Final = ("ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets")
_MANAGE: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
)
_DIGEST: Final = 12
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]")


class Observed(Construct, RuntimeMetrics):
    """A construct with a function, one log group, one service name, alarms and an optional dashboard."""

    _alarms: tuple[cloudwatch.Alarm, ...] = ()
    _dashboard: cloudwatch.Dashboard | None

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        service_name: str | None,
        options: lambda_.FunctionOptions | None,
        alarm_actions: Sequence[cloudwatch.IAlarmAction] = (),
    ) -> None:
        if service_name is not None:
            require_service_name("service_name", service_name)
        for action in require_sequence("alarm_actions", alarm_actions, "a list of alarm actions"):
            require_interface("alarm_actions", action, "IAlarmAction", "alarm actions such as SnsAction(topic)")
        super().__init__(scope, construct_id)
        self._function_options = options or lambda_.FunctionOptions()
        self._service_name = _default_name(self) if service_name is None else service_name
        given = cast("logs.ILogGroup | None", self._function_options.log_group)
        self._log_group = given or logs.LogGroup(self, "LogGroup", retention=logs.RetentionDays.ONE_MONTH)

    @property
    def function_options(self) -> lambda_.FunctionOptions:
        """The options of the functions."""
        return self._function_options

    @property
    def log_group(self) -> logs.ILogGroup:
        """The log group of the functions; an HTTP API created here has one of its own."""
        return self._log_group

    @property
    def alarms(self) -> tuple[cloudwatch.Alarm, ...]:
        """The alarms; a `CounterApi` has none."""
        return self._alarms

    @property
    def dashboard(self) -> cloudwatch.Dashboard | None:
        """The dashboard; None without ``dashboard=True``."""
        return self._dashboard

    @property
    def service_name(self) -> str:
        """The service name in logs, and the ``service`` dimension of the metrics."""
        return self._service_name


def deployed_stack(scope: Construct) -> Stack:
    """Return the stack that is deployed: what is in nested stacks has names that begin with its name."""
    stack = Stack.of(scope)
    while stack.nested_stack_parent is not None:
        stack = stack.nested_stack_parent
    return stack


def _default_name(scope: Construct) -> str:
    """Return the path below the name of the stack that is deployed: it differs between stages of one account.

    Of a path that CloudWatch would refuse, return a part and the digest of the whole.
    """
    stack = deployed_stack(scope)
    path = stack.stack_name + scope.node.path.removeprefix(stack.node.path)
    if is_service_name(path):
        return path
    digest = sha256(path.encode()).hexdigest()[:_DIGEST]
    return f"{_UNPRINTABLE.sub('?', path)[: MAX_SERVICE_NAME - _DIGEST - 1]}-{digest}"


def timeout_of(options: lambda_.FunctionOptions | None, default: Duration, low: int, high: int) -> Duration:
    """Return the timeout of functions, from ``low`` to ``high`` seconds; refuse options that a construct sets itself.

    jsii checks the types of all options, and CDK what it knows of their values.
    """
    if options is None:
        return default
    if not isinstance(options, lambda_.FunctionOptions):
        raise InvalidArgumentError("function_options", options, "a FunctionOptions of aws_cdk.aws_lambda")
    for name, allowed in _OWN.items():
        if (value := getattr(options, name)) is not None:
            raise InvalidArgumentError(f"function_options.{name}", value, allowed)
    if options.application_log_level_v2 not in (None, *_LOG_LEVELS):
        allowed = "INFO or DEBUG: a higher level would drop the metrics"
        raise InvalidArgumentError(
            "function_options.application_log_level_v2", options.application_log_level_v2, allowed
        )
    timeout = options.timeout or default
    require_duration("timeout", timeout, Duration.seconds(low), Duration.seconds(high))
    return timeout


def is_emulated(scope: Construct) -> bool:
    """Whether the app targets an emulator, whose streams have a single shard that batches do not name."""
    return str(scope.node.try_get_context("single_shard_stream")).lower() == "true"


def is_isolated(options: lambda_.FunctionOptions) -> bool:
    """Whether a function runs in a subnet without a way out of its network."""
    if options.vpc is None:
        return False
    isolated = {subnet.subnet_id for subnet in options.vpc.isolated_subnets}
    selected = options.vpc.select_subnets(**_values(options.vpc_subnets or ec2.SubnetSelection()))
    return any(subnet.subnet_id in isolated for subnet in selected.subnets)


def _values(struct: object) -> dict[str, Any]:
    """Return what was passed to a struct of jsii, by name."""
    return {**vars(struct)["_values"]}


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
        cast(kms.IKey, options.environment_encryption).grant_decrypt(role)
    return role


def build_function(
    scope: Observed,
    construct_id: str,
    *,
    description: str,
    handler: str,
    environment: Mapping[str, str],
    role: iam.Role,
    memory_size: float,
    timeout: Duration,
    page: bool = False,
) -> lambda_.Function:
    """Build a function that runs a handler; synth fails if its environment exceeds Lambda's limit."""
    options = scope.function_options
    log_level = options.application_log_level_v2 or lambda_.ApplicationLogLevel.INFO
    own: dict[str, Any] = {
        "description": description,
        "memory_size": memory_size,
        "timeout": timeout,
        "environment": {
            **(options.environment or {}),
            **environment,
            "POWERTOOLS_SERVICE_NAME": scope.service_name,
            "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
            "POWERTOOLS_LOG_LEVEL": log_level.value,
        },
        "log_group": scope.log_group,
        "application_log_level_v2": log_level,
    }
    function = lambda_.Function(
        scope,
        construct_id,
        code=staged_code(page=page),
        handler=f"dynamodb_counters.handlers.{handler}.handler",
        runtime=lambda_.Runtime.PYTHON_3_14,
        role=role,
        logging_format=lambda_.LoggingFormat.JSON,
        **{"architecture": lambda_.Architecture.ARM_64, **_values(options), **own},
    )
    check_at_synth(scope, lambda: oversized_environment(function))
    return function
