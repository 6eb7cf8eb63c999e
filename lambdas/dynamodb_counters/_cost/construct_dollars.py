"""Dollars per month of the constructs themselves: what is watched, whether events come or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dynamodb_counters._cost.functions import Function
from dynamodb_counters._cost.service_dollars import Price, doors, dynamodb, function_dollars
from dynamodb_counters._cost.workload_settings import Workload

ALARMS: Final = {"StreamAggregator": (6, 10), "EventIngest": (5, 9)}
"""Alarms of the constructs, without and with `monitoring=True`."""

METRICS: Final = {"StreamAggregator": ("Records", "ItemsUpdated", "WriteUnits"), "EventIngest": ("EventsAccepted",)}
"""Metrics of the runtime that have a value whenever events come; others need a reason."""

IDLE_METRIC: Final = "PolledEventCount"
BUSY_METRIC: Final = "InvokedEventCount"
"""Metrics of the stream's mapping, which has `MetricsConfig`: one of empty polls, too, one of invocations; billed as
custom metrics. https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html#event-source-mapping-metrics"""

_WATCH: Final = Function(1 / 900, 0.0, 1)
"""The rule that looks for what waits."""

_WATCH_READS: Final = 16.0
"""Read units of each look, when nothing does."""

_HOUR: Final = 3600.0


def constructs(load: Workload) -> list[str]:
    """Those that a workload takes."""
    return [name for name in ALARMS if name == "StreamAggregator" or load.door != "sdk"]


def idle(load: Workload, price: Price) -> dict[str, dict[str, float]]:
    """The fixed part, by construct and service."""
    found = {
        name: {
            "CloudWatch alarms": ALARMS[name][load.monitoring] * price("cloudwatch.alarm_month"),
            "CloudWatch dashboards": load.dashboard * price("cloudwatch.dashboard_month"),
        }
        for name in constructs(load)
    }
    found["StreamAggregator"] |= {
        **dynamodb(0.0, _WATCH.runs * _WATCH_READS, 0.0, price),
        **function_dollars([_WATCH], price, tracing=load.tracing),
        "CloudWatch metrics": price("cloudwatch.metric_month"),
    }
    if load.door != "sdk":
        found["EventIngest"] |= doors(replace(load, rate=0.0), price)
    return found


def metered(load: Workload, price: Price) -> dict[str, float]:
    """Metrics that are billed for the hours in which events come."""
    names = [BUSY_METRIC, *(metric for name in constructs(load) for metric in METRICS[name])]
    return {"CloudWatch metrics": len(names) * min(1.0, load.rate * _HOUR) * price("cloudwatch.metric_month")}
