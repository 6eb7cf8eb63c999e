"""The counter API does as its committed OpenAPI document says, tried by Schemathesis without a network."""

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
from dynamodb_counters.edges.reading import Reading
from dynamodb_counters.handlers import api
from examples.blog_declarations import ROLLING, SITE, VIEWS
from tests.unit.edges.handlers import NOW, Context, EmptyTable, environment, request
from tests.unit.edges.test_openapi import COMMITTED

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


@pytest.fixture(scope="module", autouse=True)
def _blog() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        environment(patch)
        counters = Counters("table", client=cast("Any", EmptyTable()), clock=lambda: NOW)
        known = Reading(counters, (VIEWS, SITE, ROLLING), lambda: NOW)
        patch.setattr(api, "reading", lambda: known)
        yield


schema = schemathesis.openapi.from_dict(json.loads(COMMITTED.read_text()))
schema.app = application


@schema.parametrize()
@settings(max_examples=20, suppress_health_check=list(HealthCheck), deadline=None)
def test_the_api_does_as_its_document_says(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(checks=CHECKS)
