"""The HTTP handlers over an empty table and a queue in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import urlencode

import pytest

from counters_lambda.handlers import api, ingest_http
from counters_lambda.http_api.json_schema import compile_schema
from counters_lambda.http_api.requests import EventCheck
from counters_lambda.http_api.resources import CountResources
from dynamodb_counters import ActiveMembers, Aggregate, Attr, Counters, Event, Extremes, Percentiles, Ranks, Window
from dynamodb_counters._declarations import Average, Count, Declaration, Histogram, Packed, Ranking, Sum
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._items.schema import LEADERBOARD, RANKING_INDEX, SCORE
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.memory_table import MemoryTable
from simulation.world import World

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")
_MEASURES: Any = {"views": Count(), "bytes": Sum("bytes"), "mean": Average("bytes")}
_RANKING = Ranking(measure="views", leaderboard="URLS")
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures=_MEASURES, ranking=_RANKING)
SITE = Aggregate("site", VIEW, pk="SITE", sk="STATISTICS", measures={"site_views": Count()})
PER_URL = Aggregate("spread", VIEWS, pk="DIST", sk="ALL", measures={"urls": Histogram("views", bounds=(1, 10, 100))})
SMALL = Aggregate("small", VIEW, pk="S#{url}", sk="C#{clientId}", measures={"n": Count()}, where=Attr("bytes").exists())
ROLLING = Window("rolling", VIEW, pk="URL#{url}", time="time", retention=timedelta(days=7))
KEPT = Window("kept", VIEW, pk="SITE", time="time", retention=None)
CLIENTS = ActiveMembers("clients", VIEW, by="url", member="clientId", time="time")
SIZES = Percentiles("sizes", VIEW, by="url", attribute="bytes")
HOURLY = Percentiles("hourly", VIEW, by="url", attribute="bytes", error=0.1, time="time")
LATEST = Extremes("latest", VIEW, by="url", attribute="time", show="clientId")
LARGEST = Extremes("largest", VIEW, attribute="bytes")
BOARD = Ranks("board", SMALL, by="url", score="n", least=0, most=99)
OWN = (*(CLIENTS._parts[-1], *SIZES._parts, *HOURLY._parts), *(*LATEST._parts, *LARGEST._parts), BOARD._parts[-1])
DECLARATIONS: tuple[Declaration, ...] = (VIEWS, SITE, PER_URL, SMALL, ROLLING, KEPT, *OWN)
HIT = Event("hit", pk="PAGE#{url}", sk="T#{time}#CID#{clientId}", packed=Packed("time", parts=2, chunk_bytes=1024))
EVENTS: tuple[Event, ...] = (VIEW, HIT)
SERVED = (*DECLARATIONS, *EVENTS)
SCHEMA = {"type": "object", "properties": {"url": {"type": "string", "maxLength": 100}, "bytes": {"type": "integer"}}}
NOW = 1_790_000_000.0


URLS = {"/": 23, "/ä?&#\u2028": 7, "0": 1}
"""How often each was viewed."""


def views() -> list[dict[str, Any]]:
    """Build views of the last day and earlier, by two clients."""
    return [
        {
            "url": url,
            "time": (datetime.fromtimestamp(NOW, UTC) - timedelta(minutes=97 * number + 1)).isoformat(),
            "clientId": f"c{number % 2}",
            "bytes": 10 * number + 0.5,
        }
        for url, times in URLS.items()
        for number in range(times)
    ]


def counted(declarations: Sequence[Declaration], *accepted: tuple[Event, Sequence[Mapping[str, Any]]]) -> World:
    """Return a table on which declarations count the events accepted."""
    world = World(*declarations)
    world.clock.now = NOW
    for event, values in accepted:
        world.accept(event, *values)
    world.deliver_all()
    return world


def ranked_table() -> MemoryTable:
    return MemoryTable(lambda: NOW, indexes={RANKING_INDEX: (LEADERBOARD, SCORE)})


def counters_of(client: MemoryTable) -> Counters:
    return Counters(client.name, client=cast("Any", client), clock=lambda: NOW)


def resources_of(client: MemoryTable, served: Sequence[Declaration | Event] = SERVED) -> CountResources:
    """Return the resources over the counts and events of a table."""
    return CountResources(counters_of(client), served)


@dataclass
class Queue:
    """An SQS client that keeps the messages sent to it."""

    messages: list[str] = field(default_factory=list)

    def send_message(self, *, QueueUrl: str, MessageBody: str, MessageAttributes: dict[str, Any]) -> None:  # noqa: N803
        assert QueueUrl
        assert MessageAttributes["taken"]["DataType"] == "Number"
        assert 0 < len(MessageBody.encode()) <= 262_144
        self.messages.append(MessageBody)


def request(method: str, path: str, query: str = "", body: str | None = None, headers: Any = ()) -> dict[str, Any]:
    """Build an HTTP API's event, payload format 2.0."""
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": dict(headers),
        "requestContext": {"http": {"method": method, "path": path}, "stage": "$default", "requestId": "r"},
        "isBase64Encoded": False,
    }
    return event | ({} if body is None else {"body": body})


def call_api(event: dict[str, Any]) -> tuple[int, Any]:
    """Return the counter API's status and document."""
    return _parsed(api.handler(event, LAMBDA_CONTEXT))


def get(path: str, **parameters: object) -> tuple[int, Any]:
    """Ask the counter API."""
    return call_api(request("GET", path, urlencode(parameters)))


def refusal(path: str, expected: int = 400, /, **parameters: object) -> str:
    """Return what is wrong with a request."""
    status, problem = get(path, **parameters)
    assert status == expected, problem
    return str(problem["detail"])


def pages(
    path: str, name: str, between: Callable[[], object] = lambda: None, **parameters: object
) -> Iterator[list[dict[str, Any]]]:
    """Yield what is listed by that name on each page; `between` runs after each."""
    while True:
        status, page = get(path, **parameters)
        assert status == 200, page
        yield page[name]
        if page["next"] is None:
            return
        assert page["next"] != parameters.get("next"), "every page gets on"
        parameters["next"] = page["next"]
        between()


def call_ingest(event: dict[str, Any]) -> tuple[int, Any]:
    """Return the ingest API's status and document."""
    return _parsed(ingest_http.handler(event, LAMBDA_CONTEXT))


def _parsed(response: dict[str, Any]) -> tuple[int, Any]:
    status, body = int(response["statusCode"]), response["body"]
    content_type = response["headers"]["Content-Type"]
    if status >= 400:
        assert content_type == "application/problem+json"
        problem = json.loads(body)
        assert problem["status"] == status
        assert len(problem["detail"]) > 3
        assert problem["title"]
        return status, problem
    return status, json.loads(body) if body and content_type == "application/json" else body


def environment(patch: pytest.MonkeyPatch, resources: CountResources | None = None) -> Queue:
    """Configure the handlers, on an empty table unless given resources; return the ingest API's queue."""
    resources = resources or resources_of(ranked_table())
    named = dict.fromkeys(("POWERTOOLS_SERVICE_NAME", "AWS_LAMBDA_FUNCTION_NAME"), "http")
    declared = {"DECLARATIONS": encode(DECLARATIONS), "EVENTS": encode(EVENTS)}
    for name, value in {**named, **declared, "CACHE_CONTROL": "private, max-age=5"}.items():
        patch.setenv(name, value)
    patch.setattr(api, "resources", lambda: resources)
    return receive(patch, EventCheck(VIEW, compile_schema(SCHEMA)))


def receive(patch: pytest.MonkeyPatch, check: EventCheck, tenant: Mapping[str, str] | None = None) -> Queue:
    """Configure the ingest API; return its queue."""
    queue = Queue()
    variables = {"MAX_BODY_BYTES": "1000000", "QUEUE_URL": "https://queue", "TENANT": json.dumps(tenant or {})}
    for name, value in variables.items():
        patch.setenv(name, value)
    patch.setattr(ingest_http, "check", lambda: replace(check, clock=lambda: NOW))
    patch.setattr(ingest_http, "sqs", lambda: queue)
    return queue
