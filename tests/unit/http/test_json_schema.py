"""A schema says nothing that is not enforced: what would be ignored is refused, by keyword and place."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters._http.json_schema import compile_schema
from dynamodb_counters.errors import InvalidArgumentError

_DRAFT = "http://json-schema.org/draft-0{}/schema#"


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "required": ["url"]}, "#/$schema"),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema", "required": ["url"]}, "#/$schema"),
        ({"dependentRequired": {"card": ["address"]}}, "#/dependentRequired"),
        ({"properties": {"tags": {"prefixItems": [{"type": "string"}]}}}, "#/properties/tags/prefixItems"),
        ({"properties": {"a/b": {"maxlength": 3}}}, "#/properties/a~1b/maxlength"),
        ({"allOf": [{}, {"unevaluatedProperties": False}]}, "#/allOf/1/unevaluatedProperties"),
        ({"additionalProperties": {"not": {"minContains": 2}}}, "#/additionalProperties/not/minContains"),
        ({"dependencies": {"a": ["b"], "c": {"$dynamicRef": "#x"}}}, "#/dependencies/c/$dynamicRef"),
        ({"properties": {"a": {"items": [{"nullable": True}]}}}, "#/properties/a/items/0/nullable"),
        ({"$defs": {"id": {"minlength": 1}}}, "#/$defs/id/minlength"),
        ({"definitions": {"id": {}}, "not": {"$ref": "#/definitions/id", "maxLength": 3}}, "#/not/maxLength"),
        ({"properties": {"id": {"format": "uuid"}}}, "#/properties/id/format"),
        ({"$schema": _DRAFT.format(4), "properties": {"kind": {"enum": ["view"]}}}, "#/$schema"),
        ({"$schema": _DRAFT.format(6), "required": ["url"]}, "#/$schema"),
        ({"then": {"required": ["b"]}}, "#/then"),
    ],
)
def test_keywords_that_would_not_be_enforced_are_refused_by_their_place(schema: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        compile_schema(schema)
    assert str(refused.value).startswith(f"invalid schema={place!r}: expected ")


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
    compile_schema(schema)


def test_a_violation_names_what_is_missing() -> None:
    assert compile_schema({"required": ["url"]})({}) == "data must contain ['url'] properties"
