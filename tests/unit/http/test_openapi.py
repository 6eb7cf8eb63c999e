"""The OpenAPI document: what it says, and that the committed one is what the example blog serves."""

from __future__ import annotations

import json
import os

import pytest

from dynamodb_counters._http.resources import openapi
from dynamodb_counters._reads.question import SPAN
from dynamodb_counters.handlers import api
from examples.blog.declarations import ROLLING, SITE, VIEWS
from simulation.handler_process import LAMBDA_CONTEXT
from tests.unit.http.handlers import EVENTS, environment, request
from tests.unit.infra.support import PROJECT

COMMITTED = PROJECT / "docs" / "openapi.json"


def test_the_document_is_cached_as_the_counts_are(monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch)
    for cache_control in ("private, max-age=5", "public, max-age=60"):
        monkeypatch.setenv("CACHE_CONTROL", cache_control)
        headers = api.handler(request("GET", "/openapi.json"), LAMBDA_CONTEXT)["headers"]
        assert headers["Cache-Control"] == cache_control


def test_the_document_says_what_a_listing_takes() -> None:
    taken = {
        path: {one["name"]: one.get("required", False) for one in operations["get"]["parameters"]}
        for path, operations in openapi(EVENTS)["paths"].items()
    }
    options = {"limit": False, "next": False, "consistent": False}
    assert taken["/v1/view/events"] == {"url": True, **options}
    fields = {"url": False, "time": False, "clientId": False}
    assert taken["/v1/hit/events"] == {**dict.fromkeys(SPAN, False), **fields, **options}


def test_the_committed_document_is_current() -> None:
    text = json.dumps(openapi([VIEWS, SITE, ROLLING]), indent=2) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        COMMITTED.write_text(text)
    assert COMMITTED.read_text() == text, "if the change is intended: UPDATE_SNAPSHOTS=1 pytest tests/unit/http"
