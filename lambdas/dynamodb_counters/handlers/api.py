"""The counter API: counts and events over HTTP, and the live page if there is one."""

from __future__ import annotations

import json
import os
from functools import cache
from http import HTTPStatus
from itertools import chain
from typing import Any, Final

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._http.requests import ProblemError, bound_values, time_limit
from dynamodb_counters._http.resources import PATHS, CountResources, openapi
from dynamodb_counters._http.responses import NO_STORE, answered, json_response, page_response
from dynamodb_counters.errors import BackfillError, UnavailableError, UncountedError

_UNAVAILABLE: Final = "the table cannot be reached now; retry"

logger = Logger()


@cache
def resources() -> CountResources:
    """Create the resources of the environment's declarations once per process."""
    declared = [decode(os.environ[name]) for name in ("DECLARATIONS", "EVENTS") if name in os.environ]
    return CountResources(Counters(os.environ["TABLE_NAME"]), chain.from_iterable(declared))


def _answer(request: dict[str, Any], seconds_left: float) -> dict[str, Any]:
    tenant = json.loads(os.environ.get("TENANT", "{}"))
    context = request["requestContext"]
    path = request["rawPath"].removeprefix(f"/{context['stage']}")
    match context["http"]["method"], path.split("/")[1:]:
        case "GET", [""]:
            return page_response("index.html")
        case "GET", ["page", name]:
            return page_response(name)
        case "GET", ["openapi.json"]:
            document = openapi(resources().served, tenant)
        case "GET", ["v1", name, *rest] if (resource := "/".join(rest) or "get") in PATHS:
            bound = bound_values(tenant, request)
            try:
                with time_limit(seconds_left, _UNAVAILABLE):
                    document = resources().read(name, request["rawQueryString"], bound, resource=resource)
            except (ClientError, BotoCoreError, TimeoutError, UnavailableError, UncountedError, BackfillError) as error:
                logger.error("the table refused a request", exc_info=error)
                raise ProblemError(_UNAVAILABLE, HTTPStatus.SERVICE_UNAVAILABLE) from error
        case _:
            raise ProblemError("no such resource; see /openapi.json", HTTPStatus.NOT_FOUND)
    return json_response(document, cache_control=os.environ.get("CACHE_CONTROL", NO_STORE))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve a request of the HTTP API, payload format 2.0."""
    return answered(lambda: _answer(event, context.get_remaining_time_in_millis() / 1000))
