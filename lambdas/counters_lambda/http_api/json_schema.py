"""JSON Schema validation of event attributes; a keyword that would be ignored is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import fastjsonschema
from fastjsonschema.draft07 import CodeGeneratorDraft07

from dynamodb_counters.errors import InvalidArgumentError

SchemaCheck: TypeAlias = Callable[[Mapping[str, Any]], str | None]  # The first violation by an event's attributes.

_FORMATS: Final = CodeGeneratorDraft07.FORMAT_REGEXS
# Of limited length: the compiler's own patterns take a time that grows with the square of it.
_EMAILS: Final = {name: rf"(?=[\s\S]{{0,320}}\Z){_FORMATS[name]}" for name in ("email", "idn-email")}

_PARTS: Final = ("additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "else", "if", "items", "not")
_NAMED_PARTS: Final = ("$defs", "definitions", "dependencies", "patternProperties", "properties")
_DESCRIBING: Final = (
    *("$comment", "$defs", "$id", "$schema", "default", "definitions", "deprecated", "description", "examples", "id"),
    *("readOnly", "title", "writeOnly"),
)
"""Keywords that enforce nothing, and are not meant to; names that start with `x-` are others."""


def require_enforced(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that is invalid, or has a keyword that no event would be checked for."""
    check = compile_schema(schema)
    checker = CodeGeneratorDraft07({})  # type: ignore[no-untyped-call]
    # The compiler skips what is not in this table, and says nothing.
    enforced = ("additionalItems", "else", "then", *checker._json_keywords_to_function)  # noqa: SLF001
    keywords: dict[str, Any] = {
        **dict.fromkeys(("$ref", *_DESCRIBING, *enforced), True),
        **{name: {"$ref": "#"} for name in (*_PARTS, "oneOf", "propertyNames", "then")},
        **{name: {"additionalProperties": {"$ref": "#"}} for name in _NAMED_PARTS},
        "$schema": {"pattern": "draft-07"},
        "format": {"enum": sorted({*checker.FORMAT_REGEXS, *_EMAILS, "regex"})},
    }
    nothing_besides = {"properties": dict.fromkeys(enforced, False)}
    required = {"additionalItems": ["items"], "then": ["if"], "else": ["if"], "$ref": nothing_besides}
    of_schemas = {"properties": keywords, "patternProperties": {"^x-": True}, "additionalProperties": False}
    of_schemas |= {"dependencies": required, "items": {"$ref": "#"}}  # Of an array of schemas, each is one.
    try:
        fastjsonschema.compile(of_schemas)(dict(schema), name_prefix="schema")
        check({})
    except (fastjsonschema.JsonSchemaValueException, RecursionError, TypeError) as error:
        allowed = f"keywords of draft 7 that are enforced where they stand ({error})"
        raise InvalidArgumentError("schema", schema, allowed) from None


def compile_schema(schema: Mapping[str, Any]) -> SchemaCheck:
    try:
        # No defaults: validation must not change what was sent.
        handlers = dict.fromkeys(("http", "https", "file"), _reject_reference)
        validate = fastjsonschema.compile(dict(schema), handlers=handlers, formats=_EMAILS, use_default=False)
    except Exception as error:
        # The compiler raises errors of many types; the cause is always the schema.
        raise InvalidArgumentError("schema", schema, f"a JSON Schema of draft 7 ({error})") from error

    def check(attributes: Mapping[str, Any]) -> str | None:
        try:
            validate(dict(attributes))
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message)
        return None

    return check


def _reject_reference(uri: str) -> None:
    raise ValueError(f"reference to an external document: {uri}")
