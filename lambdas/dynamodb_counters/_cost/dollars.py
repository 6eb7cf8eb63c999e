"""Dollars per month by service: of what is used per second, and of the constructs, whether events come or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from dynamodb_counters._cost import functions
from dynamodb_counters._cost.functions import Function
from dynamodb_counters._cost.workload_settings import Workload
from dynamodb_counters._timeline.times import DAY, HOUR

Price: TypeAlias = Callable[[str], float]
"""Dollars for one of what is named."""

MONTH: Final = 730.0 * HOUR

_GB: Final = 1e9
_MESSAGES_PER_CALL: Final = 10
_IDLE_POLLS: Final = 21_600 / DAY
"""Five pollers that wait 20 seconds each ask an idle queue, too."""

ALARMS: Final = {"StreamAggregator": (6, 10), "EventIngest": (5, 9)}
"""Alarms of the constructs, without and with `monitoring=True`."""

METRICS: Final = {"StreamAggregator": ("Records", "ItemsUpdated", "WriteUnits"), "EventIngest": ("EventsAccepted",)}
"""Metrics of the runtime that have a value whenever events come; others need a reason."""

IDLE_METRIC: Final = "PolledEventCount"
BUSY_METRIC: Final = "InvokedEventCount"
"""Metrics of the stream's mapping, which has `MetricsConfig`: one of empty polls, too, one of invocations; billed as
custom metrics. https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html#event-source-mapping-metrics"""

_TRACED: Final = 0.05
"""X-Ray traces one invocation per second, and this share of the others.
https://docs.aws.amazon.com/lambda/latest/dg/services-xray.html"""

_WATCH: Final = Function(1 / 900, 0.0, 1)
"""The rule that looks for what waits."""

_WATCH_READS: Final = 16.0
"""Read units of each look, when nothing does."""


def dynamodb(writes: float, reads: float, stored_bytes: float, price: Price) -> dict[str, float]:
    """Units per second, and bytes in the table; the constructs turn point-in-time recovery on."""
    gb = stored_bytes / _GB
    return {
        "DynamoDB writes": writes * MONTH * price("dynamodb.write_unit"),
        "DynamoDB reads": reads * MONTH * price("dynamodb.read_unit"),
        "DynamoDB storage": gb * (price("dynamodb.storage_gb_month") + price("dynamodb.recovery_gb_month")),
    }


def doors(load: Workload, price: Price) -> dict[str, float]:
    """Requests and messages, sent one by one, received and deleted in tens."""
    requests = 0.0 if load.door == "sdk" else load.rate * (1 + load.duplicates) / load.per_request
    polls = 0.0 if load.door == "sdk" else max(requests / _MESSAGES_PER_CALL, _IDLE_POLLS)
    messages = requests + polls + requests / _MESSAGES_PER_CALL
    http = requests if load.door in ("http", "validated") else 0.0
    return {"SQS": messages * MONTH * price("sqs.request"), "API Gateway": http * MONTH * price("http_api.request")}


def receiver(load: Workload) -> list[Function]:
    if load.door != "validated":
        return []
    cpu = functions.CPU_RECEIVED + functions.CPU_RECEIVED_MORE * (load.per_request - 1)
    return [Function(load.rate * (1 + load.duplicates) / load.per_request, cpu, 1)]


def function_dollars(used: Iterable[Function], price: Price, *, tracing: bool) -> dict[str, float]:
    """Runs of one function with their logs, kept for a month, and traces."""
    used = list(used)
    runs = sum(one.runs for one in used)
    traces = min(runs, 1.0) + _TRACED * max(0.0, runs - 1.0)
    logs = runs * MONTH * functions.LOG_BYTES / _GB
    return {
        "Lambda": runs * MONTH * price("lambda.request")
        + sum(one.gb_seconds for one in used) * MONTH * price("lambda.gb_second"),
        "CloudWatch logs": logs * (price("cloudwatch.log_gb") + price("cloudwatch.log_gb_month")),
        "X-Ray": tracing * traces * MONTH * price("xray.trace"),
    }


def added(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in parts:
        for name, dollars in part.items():
            found[name] = found.get(name, 0.0) + dollars
    return found


def constructs(load: Workload) -> list[str]:
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
    names = [BUSY_METRIC, *(metric for name in constructs(load) for metric in METRICS[name])]
    return {"CloudWatch metrics": len(names) * min(1.0, load.rate * HOUR) * price("cloudwatch.metric_month")}
