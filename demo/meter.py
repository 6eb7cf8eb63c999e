"""Measures what a client's requests cost, without the code that makes the requests knowing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from demo.capacity import item_bytes, query_units, write_units

_PARAMETERS: Final = "demo_parameters"
_CONDITION_FAILED: Final = "ConditionalCheckFailedException"


class Meter:
    """Adds up the units of the inserts and queries of one DynamoDB client.

    Parameters
    ----------
    client
        A botocore or boto3 client for DynamoDB. Use one of its own for each thing to be measured.

    Attributes
    ----------
    write_units : float
        Of ``PutItem``, by the size of the items. A failed condition costs as much as a success.
    read_units : float
        Of ``Query``, by the size of the items found.
    queries : int
        How many ``Query`` requests were answered.
    items, item_units : int, float
        How many items were read, and the units that writing each of them once would take.
    """

    def __init__(self, client: Any) -> None:
        self.write_units = 0.0
        self.read_units = 0.0
        self.queries = 0
        self.items = 0
        self.item_units = 0.0
        # Clients are shared among threads, and += is not atomic.
        self._lock = threading.Lock()
        client.meta.events.register("before-parameter-build.dynamodb", self._before)
        client.meta.events.register("after-call.dynamodb", self._after)

    @property
    def units_per_item(self) -> float:
        """Write units that an update of one of the items read takes, on average."""
        return self.item_units / self.items if self.items else 1.0

    @property
    def units_per_query(self) -> float:
        """Read units of a query, on average."""
        return self.read_units / self.queries if self.queries else 0.0

    def _before(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context[_PARAMETERS] = params

    def _after(self, parsed: Mapping[str, Any], model: Any, context: Mapping[str, Any], **_: Any) -> None:
        params = context[_PARAMETERS]
        code = parsed.get("Error", {}).get("Code")
        if code not in (None, _CONDITION_FAILED):
            return
        with self._lock:
            if model.name == "PutItem":
                self.write_units += write_units(item_bytes(params["Item"]))
            elif model.name == "Query":
                self.queries += 1
                self.read_units += query_units(parsed["Items"], consistent=params.get("ConsistentRead", False))
                self._weigh(parsed["Items"])
            elif model.name == "BatchGetItem":
                for found in parsed["Responses"].values():
                    self._weigh(found)

    def _weigh(self, items: Sequence[Mapping[str, Any]]) -> None:
        self.items += len(items)
        self.item_units += sum(write_units(item_bytes(item)) for item in items)


def metric_sums(logs: Any, log_group: str, namespace: str) -> dict[str, float]:
    """Add up the metrics a Lambda function has written to its log in embedded metric format.

    Parameters
    ----------
    logs
        A botocore or boto3 client for CloudWatch Logs.
    log_group : str
        The function's log group.
    namespace : str
        Metrics of other namespaces are left out.

    Returns
    -------
    dict of str to float
        Sum by metric name. Empty when nothing was logged.
    """
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
