"""Metrics: CloudWatch bills each one for every hour in which it has a value, zero included."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

warnings.filterwarnings("ignore", message="No application metrics to publish")


def add_metrics(metrics: Metrics, values: Mapping[str, float], unit: MetricUnit = MetricUnit.Count) -> None:
    for name, value in values.items():
        if value:
            metrics.add_metric(name=name, unit=unit, value=value)
