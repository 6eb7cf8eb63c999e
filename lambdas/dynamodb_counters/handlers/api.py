"""The counter API: counts and events over HTTP, and the live page if there is one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache, partial
from http import HTTPStatus
from itertools import chain
from typing import Any, Final

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Declaration, Event
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._http.requests import (
    ProblemError,
    bound_values,
    time_limit,
)
from dynamodb_counters._http.resources import PATHS, CountResources, openapi
from dynamodb_counters._http.responses import NO_STORE, json_response, page_response, problem_response
from dynamodb_counters.errors import BackfillError, InvalidArgumentError, UnavailableError, UncountedError

_UNAVAILABLE: Final = "the table cannot be reached now; retry"

logger = Logger()
app = APIGatewayHttpResolver()


@cache
def resources() -> CountResources:
    """Create the resources of the environment's declarations once per process."""
    return CountResources(Counters(os.environ["TABLE_NAME"]), _served())


def _tenant() -> Any:
    return json.loads(os.environ.get("TENANT", "{}"))


def _served() -> tuple[Declaration | Event, ...]:
    declared = (decode(os.environ[name]) for name in ("DECLARATIONS", "EVENTS") if name in os.environ)
    return tuple(chain.from_iterable(declared))


def _cache_control() -> str:
    return os.environ.get("CACHE_CONTROL", NO_STORE)


def _answered(answer: Callable[..., dict[str, Any]]) -> Callable[..., Response[str]]:
    def respond(**path: str) -> Response[str]:
        request = app.current_event.raw_event
        bound = bound_values(_tenant(), request)
        with time_limit(app.lambda_context.get_remaining_time_in_millis() / 1000, _UNAVAILABLE):
            body = answer(resources(), *path.values(), request["rawQueryString"], bound)
        return json_response(body, cache_control=_cache_control())

    return respond


for _resource, _path in PATHS.items():
    app.get(_path.format("<name>"))(_answered(partial(CountResources.read, resource=_resource)))


@app.get("/openapi.json")
def _get_openapi() -> Response[str]:
    return json_response(openapi(_served(), _tenant()), cache_control=_cache_control())


@app.get("/")
@app.get("/page/<name>")
def _get_page(name: str = "index.html") -> Response[str]:
    return page_response(name)


def _refused(error: Exception) -> Response[str]:
    logger.error("the table refused a request", exc_info=error)
    return problem_response(ProblemError(_UNAVAILABLE, HTTPStatus.SERVICE_UNAVAILABLE))


app.exception_handler(ProblemError)(problem_response)
app.exception_handler(InvalidArgumentError)(lambda error: problem_response(ProblemError(str(error))))
app.exception_handler([ClientError, BotoCoreError, TimeoutError, UnavailableError, UncountedError, BackfillError])(
    _refused
)
app.not_found(lambda _: problem_response(ProblemError("no such resource; see /openapi.json", HTTPStatus.NOT_FOUND)))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve a request of the HTTP API, payload format 2.0."""
    return app.resolve(event, context)
