"""The handlers of the HTTP APIs over a table and a queue that are only there in name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dynamodb_counters import Aggregate, Attr, Average, Count, Counters, Event, Histogram, Ranking, Sum, Window
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._http.json_schema import schema_check
from dynamodb_counters._http.resources import Reading
from dynamodb_counters.handlers import api, ingest_http

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")
VIEWS = Aggregate(
    "views",
    VIEW,
    pk="URL#{url}",
    sk="STATISTICS",
    measures={"views": Count(), "bytes": Sum("bytes"), "mean": Average("bytes")},
    ranking=Ranking(by="views", leaderboard="URLS"),
)
SITE = Aggregate("site", VIEW, pk="SITE", sk="STATISTICS", measures={"site_views": Count()})
PER_URL = Aggregate("spread", VIEWS, pk="DIST", sk="ALL", measures={"urls": Histogram("views", bounds=(1, 10, 100))})
SMALL = Aggregate("small", VIEW, pk="S#{url}", sk="C#{clientId}", measures={"n": Count()}, where=Attr("bytes").exists())
ROLLING = Window("rolling", VIEW, pk="URL#{url}", time="time", retention=timedelta(days=7))
KEPT = Window("kept", VIEW, pk="SITE", time="time", retention=None)
DECLARATIONS: tuple[Declaration, ...] = (VIEWS, SITE, PER_URL, SMALL, ROLLING, KEPT)
SCHEMA = {"type": "object", "properties": {"url": {"type": "string", "maxLength": 100}, "bytes": {"type": "integer"}}}
NOW = 1_790_000_000.0


class EmptyTable:
    """A DynamoDB client that finds nothing."""

    def get_item(self, **_: Any) -> dict[str, Any]:
        return {}

    def batch_get_item(self, **_: Any) -> dict[str, Any]:
        return {"Responses": {}, "UnprocessedKeys": {}}

    def query(self, **_: Any) -> dict[str, Any]:
        return {"Items": []}

    def get_paginator(self, _: str) -> Any:
        return SimpleNamespace(paginate=lambda **_: iter([{"Items": []}]))


@dataclass
class Queue:
    """An SQS client that keeps what is sent."""

    messages: list[str] = field(default_factory=list)

    def send_message(self, *, QueueUrl: str, MessageBody: str) -> None:  # noqa: N803
        assert QueueUrl
        assert 0 < len(MessageBody.encode()) <= 262_144
        self.messages.append(MessageBody)


@dataclass
class Context:
    """Lambda's."""

    function_name: str = "edges"
    memory_limit_in_mb: int = 128
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:edges"
    aws_request_id: str = "request"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def request(
    method: str,
    path: str,
    query: str = "",
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Make what an HTTP API hands to a function."""
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": dict(headers or {}),
        "requestContext": {"http": {"method": method, "path": path}, "stage": "$default", "requestId": "r"},
        "isBase64Encoded": False,
    }
    return event | ({} if body is None else {"body": body})


def ask(event: dict[str, Any]) -> tuple[int, Any]:
    """Ask the counter API; give the answer's status and document."""
    return _read(api.handler(event, Context()))


def post(event: dict[str, Any]) -> tuple[int, Any]:
    """Post to the ingest API; give the answer's status and document."""
    return _read(ingest_http.handler(event, Context()))


def _read(answer: dict[str, Any]) -> tuple[int, Any]:
    status, body = int(answer["statusCode"]), answer["body"]
    kind = answer["headers"]["Content-Type"]
    if status >= 400:
        assert kind == "application/problem+json"
        problem = json.loads(body)
        assert problem["status"] == status
        assert len(problem["detail"]) > 3
        assert problem["title"]
        return status, problem
    return status, json.loads(body) if body and kind == "application/json" else body


def environment(patch: pytest.MonkeyPatch) -> Queue:
    """Set the handlers up."""
    queue = Queue()
    for name, value in {
        "POWERTOOLS_SERVICE_NAME": "edges",
        "POWERTOOLS_METRICS_NAMESPACE": "Counters",
        "AWS_LAMBDA_FUNCTION_NAME": "edges",
        "DECLARATIONS": encode(DECLARATIONS),
        "CACHE_CONTROL": "private, max-age=5",
    }.items():
        patch.setenv(name, value)
    for module in (api, ingest_http):
        # Read when the modules are imported, which another test may have done.
        patch.setattr(module.metrics.provider, "namespace", "Counters")
    counters = Counters("table", client=cast("Any", EmptyTable()), clock=lambda: NOW)
    known = Reading(counters, DECLARATIONS, lambda: NOW)
    patch.setattr(api, "reading", lambda: known)
    taking = ingest_http.Receiver(VIEW, schema_check(SCHEMA), "https://queue", 100_000, cast("Any", queue))
    patch.setattr(ingest_http, "receiver", lambda: taking)
    return queue


@pytest.fixture(scope="module")
def queue() -> Iterator[Queue]:
    """Set the handlers up for a module."""
    with pytest.MonkeyPatch.context() as patch:
        yield environment(patch)
