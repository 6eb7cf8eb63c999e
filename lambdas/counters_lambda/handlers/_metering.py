"""Metrics: CloudWatch bills each one for every hour in which it has a value, zero included, and the line it comes by.

So what goes well is counted at the log level DEBUG alone, and what does not always.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

warnings.filterwarnings("ignore", message="No application metrics to publish")


def add_metrics(metrics: Metrics, values: Mapping[str, float], unit: MetricUnit = MetricUnit.Count) -> None:
    for name, value in values.items():
        if value:
            metrics.add_metric(name=name, unit=unit, value=value)


def add_routine(logger: Logger, metrics: Metrics, values: Mapping[str, float]) -> None:
    if logger.log_level <= logging.DEBUG:
        add_metrics(metrics, values)
