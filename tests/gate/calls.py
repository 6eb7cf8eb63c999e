"""The permissions that calls of AWS's API need, and the metrics that logs hold, noted while handlers run in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from dynamodb_counters.handlers import _metering
from simulation.memory.client_errors import failure

Permission = tuple[str, str]
"""An action, and the resource: its name, and what of it."""

_METHODS: Final = {
    "dynamodb": (
        *("batch_execute_statement", "batch_get_item", "delete_item", "describe_table", "get_item", "put_item"),
        *("query", "scan", "transact_write_items", "update_item"),
    ),
    "dynamodbstreams": ("describe_stream", "get_records", "get_shard_iterator"),
    "events": ("put_events",),
    "s3": ("paginate",),
    "sqs": ("send_message",),
}
"""Methods of clients that call operations."""
_ACTIONS: Final = {"Paginate": "ListBucket"}
"""Listing objects is all that is paged through."""


@dataclass
class Calls:
    """What clients were asked for, and what handlers have logged; while `throttled`, DynamoDB refuses everything."""

    permissions: set[Permission] = field(default_factory=set)
    metrics: set[str] = field(default_factory=set)
    throttled: bool = False

    def note(self, service: str, client: Any, resource: str = "") -> Any:
        """Return a client that shares all and notes its calls; `resource` is what its requests do not name."""
        noting = copy(client)
        for name in _METHODS[service]:
            action = "".join(map(str.title, name.split("_")))
            setattr(noting, name, self._noting(service, _ACTIONS.get(action, action), getattr(client, name), resource))
        return noting

    def _noting(self, service: str, action: str, call: Callable[..., Any], resource: str) -> Callable[..., Any]:
        def noting(**request: Any) -> Any:
            needed = _of_dynamodb(action, request) if service == "dynamodb" else [(action, resource or _named(request))]
            prefix = service.removesuffix("streams")
            self.permissions |= {(f"{prefix}:{action}", named) for action, named in needed}
            if self.throttled and service == "dynamodb":
                raise failure(action, "ThrottlingException")
            return call(**request)

        return noting

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Note the metrics in the log, zeros included: no situation need be made to see a metric's name."""
        log = io.StringIO()
        with redirect_stdout(log), pytest.MonkeyPatch.context() as patch:
            patch.setattr(_metering, "add_metrics", _add_all)
            yield
        documents = [json.loads(line) for line in log.getvalue().splitlines() if line.startswith("{")]
        directives = [one for document in documents for one in document.get("_aws", {}).get("CloudWatchMetrics", ())]
        self.metrics |= {metric["Name"] for one in directives for metric in one["Metrics"]}


def _add_all(metrics: Metrics, values: Mapping[str, float], unit: MetricUnit = MetricUnit.Count) -> None:
    for name, value in values.items():
        metrics.add_metric(name=name, unit=unit, value=value)


def _named(request: Mapping[str, Any]) -> str:
    return str(request.get("QueueUrl") or request.get("Bucket") or request["Entries"][0]["EventBusName"])


def _of_dynamodb(action: str, request: Mapping[str, Any]) -> Iterable[Permission]:
    """Yield what one call needs.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html
    """
    if action == "TransactWriteItems":
        for kind, write in ((kind, write) for one in request["TransactItems"] for kind, write in one.items()):
            yield "ConditionCheckItem" if kind == "ConditionCheck" else f"{kind}Item", write["TableName"]
    elif action == "BatchGetItem":
        yield from ((action, table) for table in request["RequestItems"])
    elif action == "BatchExecuteStatement":
        for statement in request["Statements"]:
            kind, _, rest = statement["Statement"].partition(" ")
            yield f"PartiQL{kind.title()}", rest.split('"')[1]
    else:
        yield action, request["TableName"] + (f"/index/{request['IndexName']}" if "IndexName" in request else "")
