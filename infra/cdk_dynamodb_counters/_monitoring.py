"""Dashboards and alarms of the constructs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct


@dataclass(frozen=True)
class Watch:
    """An alarm to be built.

    Parameters
    ----------
    construct_id : str
        Its name.
    metric : Metric
        What it watches.
    threshold : float
        It goes off at this, or above.
    description : str
        What it means, and what to do.
    periods : int, optional
        How many periods in a row. Default 1.
    """

    construct_id: str
    metric: cloudwatch.Metric
    threshold: float
    description: str
    periods: int = 1


def build_alarms(
    scope: Construct, watches: Sequence[Watch], actions: Sequence[cloudwatch.IAlarmAction]
) -> tuple[cloudwatch.Alarm, ...]:
    """Build alarms. Each is on one metric: not every emulator deploys metric math."""
    alarms = tuple(
        watch.metric.create_alarm(
            scope,
            watch.construct_id,
            alarm_description=watch.description,
            threshold=watch.threshold,
            evaluation_periods=watch.periods,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        for watch in watches
    )
    for alarm in alarms:
        alarm.add_alarm_action(*actions)
    return alarms


def build_dashboard(
    scope: Construct, graphs: Mapping[str, Sequence[cloudwatch.Metric]], alarms: Sequence[cloudwatch.Alarm]
) -> cloudwatch.Dashboard:
    """Build a dashboard: the alarms' states, then two graphs a row."""
    dashboard = cloudwatch.Dashboard(scope, "Dashboard", default_interval=Duration.hours(3))
    dashboard.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", width=24, alarms=list(alarms)))
    widgets = [cloudwatch.GraphWidget(title=title, left=list(left), width=12) for title, left in graphs.items()]
    for start in range(0, len(widgets), 2):
        dashboard.add_widgets(*widgets[start : start + 2])
    return dashboard
