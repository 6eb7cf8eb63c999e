"""Dollars a month of alarms and metrics, as the page on monitoring says, follow from the templates and the prices."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from dynamodb_counters._price_file import PRICES
from tests.unit.infra.support import PROJECT

ROWS = {
    "aggregator_minimal": "`StreamAggregator`",
    "apart_minimal": "… with a source table",
    "aggregator_verified": "… with `verify_every`",
    "aggregator_monitored": "… with `monitoring=True`, `dashboard=True`",
    "thresholds_minimal": "`StreamAggregator` and `ThresholdEvents`",
    "ingest_minimal": "`EventIngest`",
    "ingest_direct": "… in direct mode",
    "ingest_everything": "… with `monitoring=True`, `dashboard=True`",
    "api_minimal": "`CounterApi`",
    "api_everything": "… with `monitoring=True`, `dashboard=True`",
}
RUNTIME = {"aggregator": 3, "ingest_queue": 1, "notifier": 1}
"""Metrics of batches in which nothing is wrong: records, updates and write units; events accepted; crossings."""


def resources(name: str) -> list[dict[str, Any]]:
    document = json.loads((PROJECT / "tests" / "snapshots" / f"{name}.json").read_text())
    return list(document["Resources"].values())


def published(name: str, *, active: bool) -> int:
    """Custom metrics: a mapping has what it polls, 0 included, what it filters out, what it invokes a function with."""
    functions = [one["Properties"]["Handler"] for one in resources(name) if one["Type"] == "AWS::Lambda::Function"]
    mappings = sum("MetricsConfig" in one["Properties"] for one in resources(name) if "Properties" in one)
    filtered = sum("FilterCriteria" in one.get("Properties", {}) for one in resources(name))
    runtime = sum(RUNTIME.get(handler.split(".")[-2], 0) for handler in functions)
    return 2 * mappings + filtered + runtime if active else mappings


def dollars(name: str, *, active: bool) -> float:
    kinds = Counter(one["Type"] for one in resources(name))
    return (
        kinds["AWS::CloudWatch::Alarm"] * PRICES.of("cloudwatch.alarm_month")
        + kinds["AWS::CloudWatch::Dashboard"] * PRICES.of("cloudwatch.dashboard_month")
        + published(name, active=active) * PRICES.of("cloudwatch.metric_month")
    )


@pytest.mark.parametrize("name", ROWS)
def test_the_page_says_what_monitoring_costs(name: str) -> None:
    alarms = sum(one["Type"] == "AWS::CloudWatch::Alarm" for one in resources(name))
    metrics = (published(name, active=active) for active in (False, True))
    costs = (f"{dollars(name, active=active):.2f}" for active in (False, True))
    row = " | ".join((ROWS[name], str(alarms), *map(str, metrics), *costs))
    assert f"| {row} |" in (PROJECT / "docs" / "monitoring.md").read_text()


def test_an_aggregator_costs_a_dollar_idle_and_three_active() -> None:
    assert dollars("aggregator_minimal", active=False) < 1
    assert dollars("aggregator_minimal", active=True) < 3
    assert dollars("apart_minimal", active=True) < 3
