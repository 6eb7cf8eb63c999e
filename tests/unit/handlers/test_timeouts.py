"""Handlers end before their own timeouts, though nothing that they call ever answers."""

from __future__ import annotations

import gc
import json
import socket
import time
from collections.abc import Callable, Iterator
from threading import Timer
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._declarations.codec import encode
from simulation.handler_process import LAMBDA_CONTEXT
from tests.unit.handlers.conftest import Load
from tests.unit.http_api.handlers import request

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
_JSON = {"content-type": "application/json"}
_LONGEST_TEST = 20.0


@pytest.fixture
def silent() -> Iterator[str]:
    """Yield a server that takes every connection and says nothing, until a test takes too long."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        closing = Timer(_LONGEST_TEST, server.close)
        closing.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        closing.cancel()


def views(number: int) -> str:
    return json.dumps([{"url": "/", "time": "2026-11-20T10:00:00Z", "clientId": f"c{number}-{i}"} for i in range(10)])


Taken = Callable[..., tuple[float, dict[str, Any]]]


@pytest.fixture
def invoked(load: Load, silent: str) -> Taken:
    """Invoke a handler with so many seconds left; return how many it took, and its answer."""
    environment = {
        "AWS_ENDPOINT_URL": silent,
        "TABLE_NAME": "counters",
        "QUEUE_URL": f"{silent}/queue",
        "DEAD_LETTER_QUEUE_URL": f"{silent}/dead-letters",
    }
    return lambda name, timeout, event, **more: _invoke(load(name, **environment, **more), timeout, event)


def _invoke(module: ModuleType, timeout: float, event: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    began = time.monotonic()

    def milliseconds() -> float:
        return max(0.0, 1000 * (began + timeout - time.monotonic()))

    context = SimpleNamespace(**{**vars(LAMBDA_CONTEXT), "get_remaining_time_in_millis": milliseconds})
    # A time limit that is raised in a finalizer, of other tests' garbage, is lost there.
    gc.collect()
    gc.disable()
    try:
        began = time.monotonic()
        answer: dict[str, Any] = module.handler(event, context)
        return time.monotonic() - began, answer
    finally:
        gc.enable()


def test_the_receiver_answers_503_in_time(invoked: Taken) -> None:
    declared = {"DECLARATIONS": encode((VIEW,)), "MAX_BODY_BYTES": "100000"}
    took, answer = invoked("ingest_http", 3.0, request("POST", "/events", body=views(0), headers=_JSON), **declared)
    assert answer["statusCode"] == 503
    assert "resend all" in answer["body"]
    assert took < 3


def test_the_api_answers_503_in_time(invoked: Taken) -> None:
    took, answer = invoked("api", 2.0, request("GET", "/v1/views", "url=/"), DECLARATIONS=encode((VIEWS,)))
    assert answer["statusCode"] == 503
    assert took < 2


def test_the_consumer_of_the_shortest_timeout_gives_its_messages_back_in_time(invoked: Taken) -> None:
    records = [{"messageId": str(number), "body": views(number), "eventSource": "aws:sqs"} for number in range(30)]
    declared = {"DECLARATIONS": encode((VIEW,)), "TIMEOUT": "5"}
    took, answer = invoked("ingest_queue", 5.0, {"Records": records}, **declared)
    assert {item["itemIdentifier"] for item in answer["batchItemFailures"]} == {str(number) for number in range(30)}
    assert took < 5
