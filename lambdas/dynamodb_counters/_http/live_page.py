"""The live page's files, packaged with the runtime when the API has a page."""

from __future__ import annotations

import json
import os
from http import HTTPStatus
from pathlib import Path
from typing import Final

from aws_lambda_powertools.event_handler import Response

from dynamodb_counters._http.problems import ProblemError
from dynamodb_counters._http.responses import JSON, etag_response

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


def page_response(name: str, if_none_match: str | None) -> Response[str]:
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
        return etag_response(json.dumps(json.loads(settings)), JSON, headers, if_none_match)
    file = DIRECTORY / name
    kind = f"text/{_KINDS[file.suffix]}; charset=utf-8"
    return etag_response(file.read_text(encoding="utf-8"), kind, headers, if_none_match)
