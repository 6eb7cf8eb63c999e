"""The OpenAPI document and JSON Schema: what they say, and is enforced; the live page's files, and their policy."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from counters_lambda.handlers import api
from counters_lambda.http_api.json_schema import compile_schema, require_enforced
from counters_lambda.http_api.resources import openapi
from dynamodb_counters._reads.question import SPAN
from dynamodb_counters.errors import InvalidArgumentError
from examples.blog import ROLLING, SITE, VIEWS
from simulation.handler_process import LAMBDA_CONTEXT
from tests.unit.http_api.handlers import EVENTS, call_api, environment, request
from tests.unit.infra.support import PROJECT

COMMITTED = PROJECT / "docs" / "openapi.json"
_DRAFT = "http://json-schema.org/draft-0{}/schema#"


def test_the_document_is_cached_as_the_counts_are(monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch)
    for cache_control in ("private, max-age=5", "public, max-age=60"):
        monkeypatch.setenv("CACHE_CONTROL", cache_control)
        headers = api.handler(request("GET", "/openapi.json"), LAMBDA_CONTEXT)["headers"]
        assert headers["Cache-Control"] == cache_control


def test_the_document_says_what_a_listing_takes() -> None:
    parameters = {
        path: {parameter["name"]: parameter.get("required", False) for parameter in operations["get"]["parameters"]}
        for path, operations in openapi(EVENTS)["paths"].items()
    }
    options = {"limit": False, "next": False, "consistent": False}
    assert parameters["/v1/view/events"] == {"url": True, **options}
    fields = {"url": False, "time": False, "clientId": False}
    assert parameters["/v1/hit/events"] == {**dict.fromkeys(SPAN, False), **fields, **options}


def test_the_committed_document_is_current() -> None:
    text = json.dumps(openapi([VIEWS, SITE, ROLLING]), indent=2) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        COMMITTED.write_text(text)
    assert COMMITTED.read_text() == text, "if the change is intended: UPDATE_SNAPSHOTS=1 pytest tests/unit/http_api"


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "required": ["url"]}, "schema.$schema must match"),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema", "required": ["url"]}, "schema.$schema must match"),
        ({"dependentRequired": {"card": ["address"]}}, "schema must not contain {'dependentRequired'}"),
        ({"properties": {"a": {"prefixItems": [{}]}}}, "schema.properties.a must not contain {'prefixItems'}"),
        ({"properties": {"a/b": {"maxlength": 3}}}, "schema.properties.a/b must not contain {'maxlength'}"),
        ({"allOf": [{}, {"minContains": 2}]}, "schema.allOf[1] must not contain {'minContains'}"),
        ({"oneOf": [{"minContains": 2}]}, "schema.oneOf[0] must not contain {'minContains'}"),
        ({"additionalProperties": {"not": {"a": 2}}}, "schema.additionalProperties.not must not contain {'a'}"),
        ({"dependencies": {"a": ["b"], "c": {"d": 1}}}, "schema.dependencies.c must not contain {'d'}"),
        ({"properties": {"a": {"items": [{"nullable": True}]}}}, "schema.properties.a.items[0] must not contain"),
        ({"propertyNames": {"minlength": 1}}, "schema.propertyNames must not contain {'minlength'}"),
        ({"$defs": {"id": {"minlength": 1}}}, "schema.$defs.id must not contain {'minlength'}"),
        ({"definitions": {"id": {}}, "not": {"$ref": "#/definitions/id", "maxLength": 3}}, "schema.not.maxLength must"),
        ({"properties": {"id": {"format": "uuid"}}}, "schema.properties.id.format must be one of ['date', "),
        ({"$schema": _DRAFT.format(4), "properties": {"kind": {"enum": ["view"]}}}, "schema.$schema must match"),
        ({"$schema": _DRAFT.format(6), "required": ["url"]}, "schema.$schema must match"),
        ({"then": {"required": ["b"]}}, "schema missing dependency if for then"),
        ({"if": {}, "else": {"a": 1}}, "schema.else must not contain {'a'}"),
        ({"type": "objekt"}, "a JSON Schema of draft 7"),
        ({"$ref": "#"}, "maximum recursion depth"),
        ({1: 2}, "expected string"),
    ],
)
def test_keywords_that_would_not_be_enforced_are_refused_by_their_place(schema: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        require_enforced(schema)
    assert str(refused.value).startswith("invalid schema=")
    assert place in str(refused.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": _DRAFT.format(7), "if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": False},
        {"propertyNames": {"pattern": "^[a-z]+$"}, "contains": {"const": 1}},
        {"properties": {"n": {"minimum": 0}, "m": {"exclusiveMinimum": 0}}},
        {"title": "A view", "$comment": "ours", "x-owner": "web", "examples": [{"maxlength": 3}]},
        {"properties": {"prefixItems": {"type": "string"}, "a": {"enum": [{"prefixItems": []}], "default": None}}},
        {"$defs": {"id": {"minLength": 1}}, "properties": {"a": {"$ref": "#/$defs/id", "description": "an id"}}},
        {"properties": {"at": {"format": "date-time"}, "who": {"format": "idn-email"}, "p": {"format": "regex"}}},
        {"properties": {"a": True, "b": False}, "dependencies": {"a": ["b"]}},
    ],
)
def test_keywords_that_are_enforced_or_only_describe_are_taken(schema: dict[str, Any]) -> None:
    require_enforced(schema)


def test_a_violation_names_what_is_missing() -> None:
    assert compile_schema({"required": ["url"]})({}) == "data must contain ['url'] properties"


def test_a_declaration_may_have_the_name_of_the_batch() -> None:
    assert openapi([replace(VIEWS, name="batch")])["paths"]["/v1/batch"].keys() == {"get", "post"}


SOURCES = PROJECT / "infra" / "cdk_dynamodb_counters" / "page"
HTML = (SOURCES / "index.html").read_text()


@pytest.fixture(autouse=True)
def _page(monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch)
    monkeypatch.setenv("PAGE", json.dumps({"title": "</script>"}))
    monkeypatch.setattr(api, "DIRECTORY", SOURCES)


def serve(path: str) -> dict[str, Any]:
    response: dict[str, Any] = api.handler(request("GET", path), LAMBDA_CONTEXT)
    return response


def loaded(file: Path) -> Iterator[str]:
    """Find the files that the browser loads because of this one."""
    text = file.read_text()
    yield from re.findall(r"""(?:src|href)="page/([^"]+)\"""", text)
    yield from re.findall(r"""^import .* from "\./([^"]+)";$""", text, re.MULTILINE)


@pytest.mark.parametrize("name", sorted({*api.FILES, "settings.json"}))
def test_a_file_comes_with_a_policy_that_lets_nothing_else_in(name: str) -> None:
    response = serve(f"/page/{name}")
    headers = response["headers"]
    content_types = {"css": "text/css", "html": "text/html", "js": "text/javascript", "json": "application/json"}
    assert response["statusCode"] == 200
    assert headers["Content-Type"].startswith(content_types[name.rpartition(".")[2]])
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_file_is_loaded_each_time_and_the_root_is_the_page() -> None:
    for path in ("/", "/page/page.js", "/page/settings.json"):
        assert serve(path)["headers"]["Cache-Control"] == "no-cache", path
    assert serve("/")["body"] == HTML


def test_nothing_stands_in_the_page_that_its_policy_forbids() -> None:
    assert re.findall(r"""\s(?:style|on\w+)=""", HTML) == []
    assert "<style" not in HTML
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", HTML))


def test_every_file_is_loaded_and_every_loaded_file_is_served() -> None:
    names = {name for file in api.FILES for name in loaded(SOURCES / file)}
    assert names == {*api.FILES} - {"index.html"}


@pytest.mark.parametrize("name", ["uplot.LICENSE", "../api.py", "..%2fpage.css", "/etc/passwd", "", "."])
def test_no_other_file_is_served(name: str) -> None:
    assert call_api(request("GET", f"/page/{quote(name, safe='')}"))[0] == 404


def test_without_a_page_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAGE")
    assert call_api(request("GET", "/"))[0] == 404
