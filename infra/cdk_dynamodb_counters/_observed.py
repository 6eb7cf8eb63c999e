"""The base of constructs that run functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_dynamodb_counters._arguments import (
    MAX_SERVICE_NAME,
    is_service_name,
    require_boolean,
    require_interface,
    require_sequence,
    require_service_name,
)
from cdk_dynamodb_counters._log_groups import build_log_group, deployed_stack
from cdk_dynamodb_counters._metrics import RuntimeMetrics
from cdk_dynamodb_counters.function_options import FunctionOptions

_DIGEST: Final = 12
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]")


class Observed(Construct, RuntimeMetrics):
    """A construct with a function, one log group, one service name, and an optional dashboard."""

    _dashboard: cloudwatch.Dashboard | None

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        service_name: str | None,
        *,
        options: FunctionOptions,
        dashboard: bool,
    ) -> None:
        if service_name is not None:
            require_service_name("service_name", service_name)
        require_boolean("dashboard", dashboard)
        super().__init__(scope, construct_id)
        self._service_name = _default_name(self) if service_name is None else service_name
        self._function_options = options
        self._log_group = build_log_group(self, "LogGroup", options)
        if options.permissions_boundary is not None:
            # Also of the roles that CDK makes, such as the one that hands requests to a queue.
            iam.PermissionsBoundary.of(self).apply(options.permissions_boundary)

    @property
    def function_options(self) -> FunctionOptions:
        """The options of the functions."""
        return self._function_options

    @property
    def log_group(self) -> logs.LogGroup:
        """The log group of the functions; an HTTP API created here has one of its own."""
        return self._log_group

    @property
    def dashboard(self) -> cloudwatch.Dashboard | None:
        """The dashboard; None without ``dashboard=True``."""
        return self._dashboard

    @property
    def service_name(self) -> str:
        """The service name in logs, and the ``service`` dimension of the metrics."""
        return self._service_name


class AlarmOwner(Observed):
    """An observed construct with alarms."""

    _alarms: tuple[cloudwatch.Alarm, ...]

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        service_name: str | None,
        *,
        alarm_actions: Sequence[cloudwatch.IAlarmAction],
        options: FunctionOptions,
        dashboard: bool,
    ) -> None:
        for action in require_sequence("alarm_actions", alarm_actions, "a list of alarm actions"):
            require_interface("alarm_actions", action, "IAlarmAction", "alarm actions such as SnsAction(topic)")
        super().__init__(scope, construct_id, service_name, options=options, dashboard=dashboard)

    @property
    def alarms(self) -> tuple[cloudwatch.Alarm, ...]:
        """The alarms."""
        return self._alarms


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
