"""The metrics that a function has written to its log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def metric_sums(logs: Any, log_group: str, namespace: str) -> dict[str, float]:
    """Add up the metrics of a namespace in a log of embedded metric format, by name."""
    sums: dict[str, float] = {}
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=log_group)
    for event in (event for page in pages for event in page["events"]):
        for name, value in _embedded_metrics(event["message"], namespace):
            sums[name] = sums.get(name, 0.0) + value
    return sums


def _embedded_metrics(message: str, namespace: str) -> Iterator[tuple[str, float]]:
    try:
        document = json.loads(message)
    except ValueError:
        return
    if not isinstance(document, dict) or not isinstance(document.get("_aws"), dict):
        return
    for directive in document["_aws"].get("CloudWatchMetrics", []):
        if directive.get("Namespace") == namespace:
            for metric in directive.get("Metrics", []):
                # One document may hold several values of a metric.
                values = document.get(metric["Name"], 0)
                yield metric["Name"], float(sum(values) if isinstance(values, list) else values)
