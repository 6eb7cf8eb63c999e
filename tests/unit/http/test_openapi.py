"""The committed OpenAPI document is the one the example blog serves."""

from __future__ import annotations

import json
import os

from dynamodb_counters._http.openapi import openapi
from examples.blog.declarations import ROLLING, SITE, VIEWS
from tests.unit.infra.support import PROJECT

COMMITTED = PROJECT / "docs" / "openapi.json"


def test_the_committed_document_is_current() -> None:
    text = json.dumps(openapi([VIEWS, SITE, ROLLING]), indent=2) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        COMMITTED.write_text(text)
    assert COMMITTED.read_text() == text, "if the change is intended: UPDATE_SNAPSHOTS=1 pytest tests/unit/http"
