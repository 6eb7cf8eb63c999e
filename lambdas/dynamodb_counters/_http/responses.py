"""Powertools responses: JSON, problem details, conditional ones with an ETag, and the files of the live page."""

from __future__ import annotations

import hashlib
import json
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


def json_response(body: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Response[str]:
    return Response(status, JSON, write_json(body), {"Cache-Control": NO_STORE})


def etag_response(
    text: str, headers: Mapping[str, str], asked: Mapping[str, str], content_type: str = JSON
) -> Response[str]:
    """Respond with an ``ETag``; 304 without a body if ``If-None-Match`` of the request's headers lists it."""
    etag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    all_headers = {**headers, "ETag": etag}
    if etag in (tag.strip() for tag in asked.get("if-none-match", "").split(",")):
        return Response(HTTPStatus.NOT_MODIFIED, content_type, "", all_headers)
    return Response(HTTPStatus.OK, content_type, text, all_headers)


def problem_response(error: ProblemError) -> Response[str]:
    headers = {"Cache-Control": NO_STORE}
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    return Response(error.status, PROBLEM_JSON, write_json(error.body), headers)


def page_response(name: str, asked: Mapping[str, str]) -> Response[str]:
    """Serve a file of the page; ``settings.json`` comes from the function's environment."""
    settings = os.environ.get("PAGE")
    if settings is None or name not in (*FILES, SETTINGS):
        raise ProblemError(HTTPStatus.NOT_FOUND, f"no page file {name!r}")
    headers = {
        # Revalidated on each load; usually 304. After a deployment no browser mixes new modules with old ones.
        "Cache-Control": "no-cache",
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    if name == SETTINGS:
        return etag_response(json.dumps(json.loads(settings)), headers, asked)
    file = DIRECTORY / name
    kind = f"text/{_KINDS[file.suffix]}; charset=utf-8"
    return etag_response(file.read_text(encoding="utf-8"), headers, asked, kind)
