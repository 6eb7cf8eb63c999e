"""Constructs that run the runtime's handlers: their functions, roles and log groups."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from aws_cdk import CfnResource, Duration, Names, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_dynamodb_counters._arguments import (
    is_service_name,
    require_duration,
    require_list,
    require_member,
    require_service_name,
)
from cdk_dynamodb_counters._staging import runtime, staged_code
from cdk_dynamodb_counters._synth import check_at_synth, resolved_property
from dynamodb_counters.errors import InvalidArgumentError

NAMESPACE: Final = "DynamoDBCounters"
"""CloudWatch namespace of the runtime's own metrics."""

# Metrics are log lines without a level, which Lambda treats as INFO: a higher level would drop them.
# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
_LOG_LEVELS: Final = (lambda_.ApplicationLogLevel.INFO, lambda_.ApplicationLogLevel.DEBUG)
_OWN: Final = (
    *("application_log_level", "log_format", "log_retention", "logging_format", "system_log_level"),
    *("description", "events", "function_name", "role"),
)
"""Options that a construct chooses itself; logs are kept as long as those of `log_group`."""
_DEFAULTS: Final[dict[str, Any]] = {
    "architecture": lambda_.Architecture.ARM_64,
    # Lambda's own lines are INFO, and most of the bill for logs, but for an invocation that failed or timed out.
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
    "system_log_level_v2": lambda_.SystemLogLevel.WARN,
}
VARIABLES: Final = (
    *("AGGREGATES", "CACHE_CONTROL", "COUNTERS_DEV", "DEAD_LETTER_QUEUE_URL", "DECLARATIONS"),
    *("EVENTS", "EVENT_BUS", "MAX_BODY_BYTES", "ON_FAILURE_BUCKET", "PAGE", "QUARANTINE_RETENTION_DAYS", "QUEUE_URL"),
    *("SAMPLE", "SCHEMA", "SINGLE_SHARD", "SOURCE_TABLE_ARN", "TABLE_NAME", "TENANT", "TIMEOUT"),
)
"""Variables of the handlers: an option that is left out must not come from a user's own variable of that name."""

# https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
_DESCRIBE: Final = ("ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets")
_MANAGE: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
)
_ENVIRONMENT_BYTES: Final = 4096
"""Most that all variables of a function take together.
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
_UNKNOWN: Final = "x" * 255
"""Stands for a value known only at deployment: as long as the longest table name."""


def _metric(namespace: str, name: str, dimensions: dict[str, str], **props: Any) -> cloudwatch.Metric:
    """Return a metric of sums of 5 minutes, unless ``props`` say otherwise."""
    defaults = {"period": Duration.minutes(5), "statistic": "Sum"}
    return cloudwatch.Metric(namespace=namespace, metric_name=name, dimensions_map=dimensions, **{**defaults, **props})


def of_mapping(mapping: lambda_.EventSourceMapping, name: str, **props: Any) -> cloudwatch.Metric:
    return _metric("AWS/Lambda", name, {"EventSourceMappingUUID": mapping.event_source_mapping_id}, **props)


class Observed(Construct):
    """A construct with a function, one log group, one service name and alarms."""

    function: lambda_.Function
    """The function that does the construct's work."""
    function_options: lambda_.FunctionOptions
    """The options of the functions."""
    log_group: logs.ILogGroup
    """The log group of the functions; an HTTP API created here may have one of its own."""
    service_name: str
    """The service name in logs, and the ``service`` dimension of the metrics."""
    alarms: list[cloudwatch.Alarm]
    """The alarms; a `CounterApi` has none."""

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
        allowed = "a list of alarm actions such as SnsAction(topic)"
        for action in require_list("alarm_actions", alarm_actions, object, allowed):
            require_member("alarm_actions", action, "bind", allowed)
        super().__init__(scope, construct_id)
        self.function_options = options or lambda_.FunctionOptions()
        self.service_name = _default_name(self) if service_name is None else service_name
        log_group = cast("logs.ILogGroup | None", self.function_options.log_group)
        self.log_group = log_group or logs.LogGroup(self, "LogGroup", retention=logs.RetentionDays.ONE_MONTH)
        self._alarm_actions = alarm_actions
        self.alarms = []

    def metric(self, metric_name: str, **props: Any) -> cloudwatch.Metric:
        """Return a metric that the functions emit, by its name in the `table of metrics <monitoring.md>`_.

        ``props`` are those of CDK's ``Metric``, such as ``period`` and ``statistic``. Default: sums of 5 minutes.
        """
        return _metric(NAMESPACE, metric_name, {"service": self.service_name}, **props)

    def _add_alarm(
        self,
        construct_id: str,
        metric: cloudwatch.Metric,
        description: str,
        *,
        threshold: float = 1,
        below: bool = False,
        retained: bool = False,
        **props: Any,
    ) -> None:
        """Add an alarm on a single metric at or above a threshold, as not every emulator deploys metric math.

        ``below``: it fires below the threshold, and without data. ``retained``: it outlives its construct, as what it
        watches does.
        """
        missing, comparison = cloudwatch.TreatMissingData, cloudwatch.ComparisonOperator
        above = comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
        defaults = {
            "evaluation_periods": 1,
            "treat_missing_data": missing.BREACHING if below else missing.NOT_BREACHING,
            "comparison_operator": comparison.LESS_THAN_THRESHOLD if below else above,
        }
        description += f" Runbook: docs/runbook.md#{construct_id.lower()}"
        values = {**defaults, "alarm_description": description, "threshold": threshold, **props}
        alarm = metric.create_alarm(self, construct_id, **values)
        if retained:
            alarm.apply_removal_policy(RemovalPolicy.RETAIN)
        alarm.add_alarm_action(*self._alarm_actions)
        self.alarms.append(alarm)

    def _is_emulated(self) -> bool:
        """Return whether the app targets an emulator, whose streams have a single shard that batches do not name."""
        return str(self.node.try_get_context("single_shard_stream")).lower() == "true"

    def _build_role(self, construct_id: str, description: str) -> iam.Role:
        """Build a function's role, which may do what its options need and write logs; the function adds tracing."""
        options = self.function_options
        role = iam.Role(
            self, construct_id, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"), description=description
        )
        self.log_group.grant_write(role)
        if options.vpc is not None:
            # Only Lambda itself may: calls of the function's code name the function.
            # https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
            only = {"Null": {"lambda:SourceFunctionArn": "true"}}
            # Lambda documents no narrower resource than this for deleting an interface, and none for describing.
            interfaces = Stack.of(role).format_arn(service="ec2", resource="*", resource_name="*")
            for actions, resource in ((_DESCRIBE, "*"), (_MANAGE, interfaces)):
                role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=[resource], conditions=only))
        if options.environment_encryption is not None:
            cast(kms.IKey, options.environment_encryption).grant_decrypt(role)
        return role

    def _build_function(
        self,
        construct_id: str,
        *,
        description: str,
        handler: str,
        environment: Mapping[str, str],
        role: iam.Role,
        timeout: Duration,
        memory_size: float | None = None,
        page: bool = False,
    ) -> lambda_.Function:
        """Build a function that runs a handler; synth fails if its environment exceeds Lambda's limit."""
        options = self.function_options
        log_level = options.application_log_level_v2 or lambda_.ApplicationLogLevel.INFO
        properties: dict[str, Any] = vars(options)["_values"]  # all that was passed to jsii's struct
        own = {
            "description": description,
            "memory_size": next((size for size in (memory_size, options.memory_size) if size is not None), 512),
            "timeout": timeout,
            "environment": {
                **(options.environment or {}),
                **environment,
                "POWERTOOLS_SERVICE_NAME": self.service_name,
                "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
                "POWERTOOLS_LOG_LEVEL": log_level.value,
            },
            "log_group": self.log_group,
            "application_log_level_v2": log_level,
        }
        function = lambda_.Function(
            self,
            construct_id,
            code=staged_code(page=page),
            handler=f"counters_lambda.handlers.{handler}.handler",
            runtime=runtime(),
            role=role,
            logging_format=lambda_.LoggingFormat.JSON,
            **{**_DEFAULTS, **properties, **own},
        )
        check_at_synth(self, lambda: _oversized_environment(function))
        return function


def timeout_of(options: lambda_.FunctionOptions | None, default: Duration, low: int, high: int) -> Duration:
    """Return the timeout of functions, from ``low`` to ``high`` seconds; refuse options that a construct sets itself.

    jsii checks the types of all options, and CDK what it knows of their values.
    """
    if options is None:
        return default
    if not isinstance(options, lambda_.FunctionOptions) or isinstance(options, lambda_.FunctionProps):
        raise InvalidArgumentError("function_options", options, "a FunctionOptions of aws_cdk.aws_lambda")
    for name in _OWN:
        if (value := getattr(options, name)) is not None:
            raise InvalidArgumentError(f"function_options.{name}", value, "None: the construct chooses it")
    if own := sorted({*VARIABLES} & {*(options.environment or ())}):
        raise InvalidArgumentError("function_options.environment", own[0], "no variable that handlers read")
    if (level := options.application_log_level_v2) not in (None, *_LOG_LEVELS):
        allowed = "INFO or DEBUG: a higher level would drop the metrics"
        raise InvalidArgumentError("function_options.application_log_level_v2", level, allowed)
    timeout = options.timeout or default
    require_duration("timeout", timeout, Duration.seconds(low), Duration.seconds(high))
    return timeout


def _default_name(scope: Construct) -> str:
    """Return the path below the name of the stack that is deployed: it differs between stages of one account."""
    stack = Stack.of(scope)
    while stack.nested_stack_parent is not None:
        stack = stack.nested_stack_parent
    path = stack.stack_name + scope.node.path.removeprefix(stack.node.path)
    return path if is_service_name(path) else Names.unique_id(scope)


def _oversized_environment(function: lambda_.Function) -> str | None:
    """Find an environment that exceeds Lambda's limit."""
    resource = cast(CfnResource, function.node.default_child)
    environment = resolved_property(resource, "environment")["variables"]
    variables = {name: value if isinstance(value, str) else _UNKNOWN for name, value in environment.items()}
    # Lambda measures the variables as JSON, which escapes the quotes of a schema.
    size = len(json.dumps(variables))
    if size <= _ENVIRONMENT_BYTES:
        return None
    most, name = max((len(json.dumps(value)), name) for name, value in variables.items())
    problem = (
        f"the function's environment takes {size} bytes as JSON, {most} of them for {name}, "
        f"but Lambda allows {_ENVIRONMENT_BYTES}"
    )
    return f"{problem}: declare less, shorten names, keys or the schema, or move some declarations to another table"
