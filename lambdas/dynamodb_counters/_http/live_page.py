"""The files of the live page, which stand beside the runtime in the function's code where there is a page."""

from __future__ import annotations

import json
import os
from http import HTTPStatus
from pathlib import Path
from typing import Final

from aws_lambda_powertools.event_handler import Response

from dynamodb_counters._http.problems import ProblemError
from dynamodb_counters._http.responses import JSON, tagged

DIRECTORY: Final = Path(__file__).resolve().parents[1] / "page"

CONTENT_SECURITY_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)

_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
FILES: Final = frozenset(
    {"beacon.js", "chart.js", "formats.js", "index.html", "page.css", "page.js", "uplot.css", "uplot.js"}
)
SETTINGS: Final = "settings.json"


def page_file(name: str, known: str | None = None) -> Response[str]:
    """Give a file of the page.

    Parameters
    ----------
    name : str
        Its name; ``settings.json`` is what the function's environment says of the page.
    known : str, optional
        The request's ``If-None-Match``.

    Returns
    -------
    Response
        With headers that let it load nothing from elsewhere.

    Raises
    ------
    ProblemError
        There is no page, or no such file of it.
    """
    settings = os.environ.get("PAGE")
    if settings is None or name not in (*FILES, SETTINGS):
        raise ProblemError(HTTPStatus.NOT_FOUND, f"no page {name!r}")
    headers = {
        # Asked for each time and seldom sent: after a deployment no browser mixes new modules with old ones.
        "Cache-Control": "no-cache",
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    if name == SETTINGS:
        return tagged(json.dumps(json.loads(settings)), JSON, headers, known)
    file = DIRECTORY / name
    return tagged(file.read_text(encoding="utf-8"), _TYPES[file.suffix], headers, known)
