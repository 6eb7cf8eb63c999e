"""The counter API: counts and events over HTTP, and the live page if there is one."""

from __future__ import annotations

import json
import os
from functools import cache
from http import HTTPStatus
from itertools import chain
from pathlib import Path
from typing import Any, Final

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from counters_lambda.http_api import requests
from counters_lambda.http_api.requests import JSON, NO_STORE, ProblemError, json_response, response
from counters_lambda.http_api.resources import CountResources, openapi
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters.errors import BackfillError, UnavailableError, UncountedError

_UNAVAILABLE: Final = "the table cannot be reached now; retry"

DIRECTORY: Final = Path(__file__).resolve().parents[1] / "page"
_PAGE_HEADERS: Final = {
    "Cache-Control": "no-cache",  # Loaded each time: after a deployment no browser mixes new modules with old ones.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_KINDS: Final = {".css": "css", ".html": "html", ".js": "javascript"}
FILES: Final = ("beacon.js", "chart.js", "formats.js", "index.html", "page.css", "page.js", "uplot.css", "uplot.js")

logger = Logger()


@cache
def resources() -> CountResources:
    declared = [decode(os.environ[name]) for name in ("DECLARATIONS", "EVENTS") if name in os.environ]
    return CountResources(Counters(os.environ["TABLE_NAME"]), chain.from_iterable(declared))


def _tenant() -> Any:
    return json.loads(os.environ.get("TENANT", "{}"))


def _page(name: str) -> dict[str, Any]:
    settings = os.environ.get("PAGE")
    if settings is not None and name == "settings.json":
        return response(HTTPStatus.OK, JSON, settings, _PAGE_HEADERS)
    if settings is None or name not in FILES:
        raise ProblemError(f"no page file {name!r}", HTTPStatus.NOT_FOUND)
    file = DIRECTORY / name
    kind = f"text/{_KINDS[file.suffix]}; charset=utf-8"
    return response(HTTPStatus.OK, kind, file.read_text(encoding="utf-8"), _PAGE_HEADERS)


def _counts(request: dict[str, Any], seconds_left: float, name: str, resource: str = "get") -> dict[str, Any]:
    bound = requests.bound_values(_tenant(), request)
    try:
        with requests.time_limit(seconds_left, _UNAVAILABLE):
            if resource == "batch":
                body = requests.body_text(request, requests.MAX_BODY_BYTES)
                return resources().batch(requests.parse_json(body), bound)
            return resources().read(name, request["rawQueryString"], bound, resource=resource)
    except (ClientError, BotoCoreError, TimeoutError, UnavailableError, UncountedError, BackfillError) as error:
        logger.error("the table refused a request", exc_info=error)
        detail = str(error) if isinstance(error, UncountedError) else _UNAVAILABLE
        raise ProblemError(detail, HTTPStatus.SERVICE_UNAVAILABLE) from error


def _answer(request: dict[str, Any], seconds_left: float) -> dict[str, Any]:
    context = request["requestContext"]
    path = request["rawPath"].removeprefix(f"/{context['stage']}")
    match context["http"]["method"], path.split("/")[1:]:
        case "GET", [""]:
            return _page("index.html")
        case "GET", ["page", name]:
            return _page(name)
        case "GET", ["openapi.json"]:
            document = openapi(resources().served, _tenant())
        case "GET", ["v1", name]:
            document = _counts(request, seconds_left, name)
        case "GET", ["v1", name, "series" | "top" | "events" as resource]:
            document = _counts(request, seconds_left, name, resource)
        case "POST", ["v1", "batch"]:
            return json_response(_counts(request, seconds_left, "", "batch"))
        case _:
            raise ProblemError("no such resource; see /openapi.json", HTTPStatus.NOT_FOUND)
    return json_response(document, cache=os.environ.get("CACHE_CONTROL", NO_STORE))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve a request of the HTTP API, payload format 2.0."""
    return requests.answered(lambda: _answer(event, context.get_remaining_time_in_millis() / 1000))
