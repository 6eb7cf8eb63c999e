"""Responses as API Gateway takes them (payload format 2.0): JSON, problem details, and the files of the live page."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from dynamodb_counters._http.requests import PROBLEM_JSON, ProblemError, write_json
from dynamodb_counters.errors import InvalidArgumentError

JSON: Final = "application/json"
NO_STORE: Final = "no-store"

DIRECTORY: Final = Path(__file__).resolve().parents[1] / "page"
_PAGE_HEADERS: Final = {
    # Loaded each time: after a deployment no browser mixes new modules with old ones.
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_KINDS: Final = {".css": "css", ".html": "html", ".js": "javascript"}
FILES: Final = frozenset(
    {"beacon.js", "chart.js", "formats.js", "index.html", "page.css", "page.js", "uplot.css", "uplot.js"}
)


def answered(answer: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the answer, or the problem that it raises."""
    try:
        return answer()
    except ProblemError as error:
        problem = error
    except InvalidArgumentError as error:
        problem = ProblemError(str(error))
    retry = {"Retry-After": "1"} if problem.status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return _response(problem.status, PROBLEM_JSON, write_json(problem.body), {"Cache-Control": NO_STORE, **retry})


def json_response(
    body: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK, cache_control: str = NO_STORE
) -> dict[str, Any]:
    headers = {"Cache-Control": cache_control, "Vary": "Authorization"}
    return _response(status, JSON, write_json(body), headers)


def page_response(name: str) -> dict[str, Any]:
    """Serve a file of the page; ``settings.json`` comes from the function's environment."""
    settings = os.environ.get("PAGE")
    if settings is not None and name == "settings.json":
        return _response(HTTPStatus.OK, JSON, settings, _PAGE_HEADERS)
    if settings is None or name not in FILES:
        raise ProblemError(f"no page file {name!r}", HTTPStatus.NOT_FOUND)
    file = DIRECTORY / name
    kind = f"text/{_KINDS[file.suffix]}; charset=utf-8"
    return _response(HTTPStatus.OK, kind, file.read_text(encoding="utf-8"), _PAGE_HEADERS)


def _response(status: HTTPStatus, kind: str, body: str, headers: Mapping[str, str]) -> dict[str, Any]:
    return {"statusCode": int(status), "headers": {"Content-Type": kind, **headers}, "body": body}
