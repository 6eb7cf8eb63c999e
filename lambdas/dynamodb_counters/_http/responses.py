"""Powertools responses: JSON, problem details, and the files of the live page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from aws_lambda_powertools.event_handler import Response

from dynamodb_counters._http.requests import PROBLEM_JSON, ProblemError, write_json

JSON: Final = "application/json"
NO_STORE: Final = "no-store"

DIRECTORY: Final = Path(__file__).resolve().parents[1] / "page"

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_KINDS: Final = {".css": "css", ".html": "html", ".js": "javascript"}
FILES: Final = frozenset(
    {"beacon.js", "chart.js", "formats.js", "index.html", "page.css", "page.js", "uplot.css", "uplot.js"}
)
SETTINGS: Final = "settings.json"


def json_response(
    body: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK, cache_control: str = NO_STORE
) -> Response[str]:
    return Response(status, JSON, write_json(body), {"Cache-Control": cache_control, "Vary": "Authorization"})


def problem_response(error: ProblemError) -> Response[str]:
    headers = {"Cache-Control": NO_STORE}
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    return Response(error.status, PROBLEM_JSON, write_json(error.body), headers)


def page_response(name: str) -> Response[str]:
    """Serve a file of the page; ``settings.json`` comes from the function's environment."""
    settings = os.environ.get("PAGE")
    if settings is None or name not in (*FILES, SETTINGS):
        raise ProblemError(f"no page file {name!r}", HTTPStatus.NOT_FOUND)
    headers = {
        # Loaded each time: after a deployment no browser mixes new modules with old ones.
        "Cache-Control": "no-cache",
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    if name == SETTINGS:
        return Response(HTTPStatus.OK, JSON, settings, headers)
    file = DIRECTORY / name
    kind = f"text/{_KINDS[file.suffix]}; charset=utf-8"
    return Response(HTTPStatus.OK, kind, file.read_text(encoding="utf-8"), headers)
