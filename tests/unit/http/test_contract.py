"""Schemathesis holds the counter API to its OpenAPI document, without a network.

It does so for a declaration of each kind, over counts.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import pytest

from simulation.night import NIGHT

if not NIGHT:
    # Schemathesis takes seconds to be collected.
    pytest.skip("waits for the night", allow_module_level=True)

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from dynamodb_counters._declarations.kinds import group_fields
from dynamodb_counters._http.openapi import openapi
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters.handlers import api
from simulation.handler_process import LAMBDA_CONTEXT
from tests.unit.http.counted import URLS
from tests.unit.http.handlers import DECLARATIONS, EVENTS, LIMITED, NOW, environment, request

SPAN = {
    name: datetime.fromtimestamp(NOW + seconds, UTC).isoformat()
    for name, seconds in (("start", -5 * 86_400), ("end", 86_400))
}
ONE_SPAN = {"last", "as_of", "start", "end", "period", "of", "tz", "anchor"}
"""Options of which a request takes one kind, and a name of a period only with its period."""

FIELDS = {declared.name: group_fields(declared) for declared in DECLARATIONS}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
Start = Callable[[str, list[tuple[str, str]]], object]


def application(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    """Pass a WSGI request to the handler as an HTTP API would."""
    headers = {name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
    if content_type := environ.get("CONTENT_TYPE"):
        headers["content-type"] = content_type
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    try:
        encoded: dict[str, Any] = {"body": body.decode()}
    except UnicodeDecodeError:
        encoded = {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
    event = request(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"], headers=headers)
    if body:
        event |= encoded
    response = api.handler(event, LAMBDA_CONTEXT)
    status = HTTPStatus(response["statusCode"])
    start(f"{status.value} {status.phrase}", list(response["headers"].items()))
    return [response["body"].encode()]


@pytest.fixture
def documents(counted: CountResources, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Collect the 200 documents of an operation; some must hold more than zeros."""
    environment(monkeypatch, counted)
    found: list[Any] = []
    yield found
    assert sum(map(holds_counts, found)) >= 3, f"{len(found)} documents, nearly all empty"


every_kind = schemathesis.openapi.from_dict(openapi((*DECLARATIONS, *EVENTS), limited=LIMITED))
every_kind.app = application


@every_kind.parametrize()
@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
def test_answers_about_counts_are_as_documented(case: schemathesis.Case[Any], documents: list[Any]) -> None:
    if case.meta is not None and case.meta.generation.mode.is_positive:
        request_counted_groups(case)
    response = case.call_and_validate(checks=CHECKS)
    if response.status_code == HTTPStatus.OK:
        documents.append(response.json())


def request_counted_groups(case: schemathesis.Case[Any]) -> None:
    """Replace generated groups by counted ones, spans by one with events, and drop half of the options."""
    generated: dict[str, str] = dict(case.query)
    counted_values = {"url": list(URLS), "clientId": ["c0", "c1"]}
    groups = {name: pick(counted_values[name], len(text)) for name, text in generated.items() if name in counted_values}
    optional = generated.keys() - counted_values.keys() - SPAN.keys() - {"time"}
    options = {name: generated[name] for name in sorted(optional) if len(str(generated[name])) % 2}
    spans: list[dict[str, str]] = [
        SPAN,
        {"period": "month"},
        {name: options[name] for name in options if name == "last"},
    ]
    named = {parameter.name for parameter in case.operation.query}
    span = spans[len(generated) % 3] if "as_of" in named else SPAN
    options = {name: text for name, text in options.items() if name not in ONE_SPAN}
    case.query = groups | options | {name: text for name, text in span.items() if name in named}
    body: Any = case.body
    if isinstance(body, dict):
        for entry in (*body.get("groups", ()), *body.get("windows", ())):
            size = len(entry["values"])
            fields = FIELDS[entry.get("aggregate") or entry["window"]]
            entry["values"] = {name: pick(counted_values[name], size) for name in fields}
            for name in entry.keys() & ONE_SPAN:
                del entry[name]


def pick(values: list[str], index: int) -> str:
    return values[index % len(values)]


def holds_counts(document: Any) -> bool:
    """Whether a document holds a number other than zero, or is an OpenAPI document."""
    if isinstance(document, dict):
        return "paths" in document or any(map(holds_counts, document.values()))
    return (
        any(map(holds_counts, document))
        if isinstance(document, list)
        else isinstance(document, float | int) and document != 0
    )
