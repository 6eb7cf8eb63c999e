"""Alarms and dashboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

_RUNBOOK: Final = "docs/runbook.md"


@dataclass(frozen=True)
class AlarmSpec:
    """An alarm that fires when ``metric`` is at or above ``threshold`` for ``periods`` periods in a row.

    ``once``: in one of them. ``below``: below the threshold. ``missing`` says what a period without data is.
    ``retained``: it outlives its construct, as what it watches does.
    """

    construct_id: str
    metric: cloudwatch.Metric
    threshold: float
    description: str
    periods: int = 1
    once: bool = False
    below: bool = False
    missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING
    retained: bool = False


def build_alarms(
    scope: Construct, specs: Sequence[AlarmSpec], actions: Sequence[cloudwatch.IAlarmAction]
) -> tuple[cloudwatch.Alarm, ...]:
    """Build alarms, each on a single metric: not every emulator deploys metric math."""
    alarms = tuple(_build_alarm(scope, spec) for spec in specs)
    for alarm in alarms:
        alarm.add_alarm_action(*actions)
    return alarms


def _build_alarm(scope: Construct, spec: AlarmSpec) -> cloudwatch.Alarm:
    comparison = cloudwatch.ComparisonOperator
    alarm = spec.metric.create_alarm(
        scope,
        spec.construct_id,
        alarm_description=f"{spec.description} Runbook: {_RUNBOOK}#{spec.construct_id.lower()}",
        threshold=spec.threshold,
        evaluation_periods=spec.periods,
        datapoints_to_alarm=1 if spec.once else None,
        comparison_operator=(
            comparison.LESS_THAN_THRESHOLD if spec.below else comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
        ),
        treat_missing_data=spec.missing,
    )
    if spec.retained:
        alarm.apply_removal_policy(RemovalPolicy.RETAIN)
    return alarm


def build_dashboard(
    scope: Construct, graphs: Mapping[str, Sequence[cloudwatch.Metric]], alarms: Sequence[cloudwatch.Alarm] = ()
) -> cloudwatch.Dashboard:
    """Build a dashboard: the states of alarms, then two graphs per row."""
    dashboard = cloudwatch.Dashboard(scope, "Dashboard", default_interval=Duration.hours(3))
    if alarms:
        dashboard.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", width=24, alarms=list(alarms)))
    widgets = [cloudwatch.GraphWidget(title=title, left=list(left), width=12) for title, left in graphs.items()]
    for start in range(0, len(widgets), 2):
        dashboard.add_widgets(*widgets[start : start + 2])
    return dashboard
