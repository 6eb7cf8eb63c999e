"""What constructs with functions have in common: logs, a name in them, alarms and a dashboard."""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_dynamodb_counters._arguments import require_service_name


class Observed(Construct):
    """A construct whose functions log under one name, and which alarms may watch.

    Parameters
    ----------
    scope : Construct
        Where it stands.
    construct_id : str
        Its name there.
    service_name : str or None
        Names it in logs and metrics. None: its path.
    log_retention : RetentionDays
        How long logs are kept.

    Raises
    ------
    InvalidArgumentError
        The path is to be the name, and cannot be.
    """

    _alarms: tuple[cloudwatch.Alarm, ...]
    _dashboard: cloudwatch.Dashboard | None

    def __init__(
        self, scope: Construct, construct_id: str, *, service_name: str | None, log_retention: logs.RetentionDays
    ) -> None:
        super().__init__(scope, construct_id)
        self._service_name = self.node.path if service_name is None else service_name
        require_service_name("service_name", self._service_name)
        self._log_group = logs.LogGroup(self, "LogGroup", retention=log_retention)

    @property
    def log_group(self) -> logs.LogGroup:
        """Where functions log to, and the API if there is one."""
        return self._log_group

    @property
    def alarms(self) -> tuple[cloudwatch.Alarm, ...]:
        """The alarms; the construct's own documentation says which there are."""
        return self._alarms

    @property
    def dashboard(self) -> cloudwatch.Dashboard | None:
        """The dashboard, with monitoring."""
        return self._dashboard

    @property
    def service_name(self) -> str:
        """The ``service`` of logs and metrics."""
        return self._service_name
