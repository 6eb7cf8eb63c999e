"""The counter API does as its OpenAPI document says, tried by Schemathesis without a network.

Twice: the example blog's, as committed, over an empty table; and one with a declaration of each kind, over counts.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from dynamodb_counters import Counters
from dynamodb_counters._http.openapi import openapi
from dynamodb_counters._http.resources import Reading
from dynamodb_counters.handlers import api
from examples.blog.declarations import ROLLING, SITE, VIEWS
from tests.unit.http.counted import URLS, counted
from tests.unit.http.handlers import DECLARATIONS, NOW, Context, EmptyTable, environment, request
from tests.unit.http.test_openapi import COMMITTED

__all__ = ["counted"]

FIELDS = {declared.name: declared.fields for declared in DECLARATIONS}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
Start = Callable[[str, list[tuple[str, str]]], object]


def application(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    """Hand a request to the handler as an HTTP API would."""
    headers = {name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
    if kind := environ.get("CONTENT_TYPE"):
        headers["content-type"] = kind
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    try:
        sent: dict[str, Any] = {"body": body.decode()}
    except UnicodeDecodeError:
        sent = {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
    event = request(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"], headers=headers)
    if body:
        event |= sent
    answer = api.handler(event, Context())
    start(f"{answer['statusCode']} {HTTPStatus(answer['statusCode']).phrase}", list(answer["headers"].items()))
    return [answer["body"].encode()]


@pytest.fixture
def _nothing_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch)
    counters = Counters("table", client=cast("Any", EmptyTable()), clock=lambda: NOW)
    known = Reading(counters, (VIEWS, SITE, ROLLING), lambda: NOW)
    monkeypatch.setattr(api, "reading", lambda: known)


@pytest.fixture
def answers(counted: Reading, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Collect what is answered with 200 about an operation: some of it must be more than zeros."""
    environment(monkeypatch)
    monkeypatch.setattr(api, "reading", lambda: counted)
    found: list[Any] = []
    yield found
    assert sum(map(holds_counts, found)) >= 3, f"{len(found)} answers, all but empty"


blog = schemathesis.openapi.from_dict(json.loads(COMMITTED.read_text()))
every_kind = schemathesis.openapi.from_dict(openapi(DECLARATIONS))
blog.app = every_kind.app = application


@blog.parametrize()
@settings(max_examples=20, suppress_health_check=list(HealthCheck), deadline=None)
@pytest.mark.usefixtures("_nothing_counted")
def test_the_api_does_as_its_document_says(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(checks=CHECKS)


@every_kind.parametrize()
@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
def test_answers_about_counts_are_as_documented(case: schemathesis.Case[Any], answers: list[Any]) -> None:
    if case.meta is not None and case.meta.generation.mode.is_positive:
        ask_for_what_was_counted(case)
    response = case.call_and_validate(checks=CHECKS)
    if response.status_code == HTTPStatus.OK:
        answers.append(response.json())


def ask_for_what_was_counted(case: schemathesis.Case[Any]) -> None:
    """Put known groups in the place of made-up ones, and leave out options of even length: their defaults fit."""
    made_up: dict[str, str] = dict(case.query)
    known = {"url": list(URLS), "clientId": ["c0", "c1"]}
    query = {name: known[name][len(text) % len(known[name])] for name, text in made_up.items() if name in known}
    case.query = query | {name: text for name, text in made_up.items() if name not in known and len(str(text)) % 2}
    body: Any = case.body
    if isinstance(body, dict):
        for group in body["groups"]:
            place = len(group["values"])
            group["values"] = {name: known[name][place % len(known[name])] for name in FIELDS[group["aggregate"]]}


def holds_counts(document: Any) -> bool:
    """Tell whether a document has a number other than zero, or paths as an OpenAPI document does."""
    if isinstance(document, dict):
        return "paths" in document or any(map(holds_counts, document.values()))
    return (
        any(map(holds_counts, document))
        if isinstance(document, list)
        else isinstance(document, float | int) and document != 0
    )
