"""JSON Schema validation of event attributes; a keyword that would be ignored is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import fastjsonschema
from fastjsonschema.draft07 import CodeGeneratorDraft07

from dynamodb_counters.errors import InvalidArgumentError

SchemaCheck: TypeAlias = Callable[[Mapping[str, Any]], str | None]
"""Returns the first violation of the schema by an event's attributes, or None."""

_MAX_EMAIL: Final = 320
_EMAILS: Final = {name: re.compile(CodeGeneratorDraft07.FORMAT_REGEXS[name]) for name in ("email", "idn-email")}

_DRAFT: Final = "draft-07"
_WITH_OTHERS: Final = {"additionalItems": "items", "else": "if", "then": "if"}
"""Keywords that are enforced only next to another one."""

_DESCRIBING: Final = re.compile(
    r"\$comment|\$defs|\$id|\$schema|default|definitions|deprecated|description|examples|id|readOnly|title|writeOnly|x-.*"
)
"""Keywords that enforce nothing, and are not meant to."""

_ONE: Final = ("additionalItems", "additionalProperties", "contains", "else", "if", "not", "propertyNames", "then")
_MANY: Final = ("allOf", "anyOf", "items", "oneOf")
_NAMED: Final = ("$defs", "definitions", "dependencies", "patternProperties", "properties")


def compile_schema(schema: Mapping[str, Any]) -> SchemaCheck:
    """Compile a self-contained schema, all of which is enforced."""
    try:
        # No defaults: validation must not change what was sent.
        validate = fastjsonschema.compile(
            dict(schema),
            handlers=dict.fromkeys(("http", "https", "file"), _reject_reference),
            formats={name: partial(_is_email, pattern) for name, pattern in _EMAILS.items()},
            use_default=False,
        )
    except Exception as error:
        # The compiler raises errors of many types; the cause is always the schema.
        raise InvalidArgumentError("schema", schema, f"a JSON Schema of draft 7 ({error})") from error
    _require_enforced(schema)

    def check(attributes: Mapping[str, Any]) -> str | None:
        try:
            validate(dict(attributes))
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message)
        return None

    return check


def _is_email(pattern: re.Pattern[str], text: str) -> bool:
    """These patterns of the compiler take a time that grows with the square of the length."""
    return len(text) <= _MAX_EMAIL and pattern.match(text) is not None


def _reject_reference(uri: str) -> None:
    raise ValueError(f"reference to an external document: {uri}")


def _require_enforced(schema: Mapping[str, Any]) -> None:
    """Refuse what no event would be checked for, by its place as a JSON pointer."""
    if _DRAFT not in (said := str(schema.get("$schema", _DRAFT))):
        raise InvalidArgumentError("schema", "#/$schema", f"{_DRAFT} or none, but it is {said!r}")
    checker = CodeGeneratorDraft07({})  # type: ignore[no-untyped-call]
    # The compiler skips what is not in this table, and says nothing.
    enforced = {"$ref", *checker._json_keywords_to_function}  # noqa: SLF001
    formats = {*checker.FORMAT_REGEXS, *_EMAILS, "regex"}
    for place, part in _parts("#", schema):
        for keyword, value in part.items():
            if _DESCRIBING.fullmatch(keyword):
                continue
            where = f"{place}/{_escaped(keyword)}"
            if keyword not in enforced and not {_WITH_OTHERS.get(keyword)} & enforced & part.keys():
                raise InvalidArgumentError("schema", where, f"a keyword of {_DRAFT}: this one would not be enforced")
            if "$ref" in part and keyword != "$ref":
                raise InvalidArgumentError("schema", where, "nothing next to $ref: it would not be enforced; use allOf")
            if keyword == "format" and value not in formats:
                known = ", ".join(sorted(formats))
                raise InvalidArgumentError("schema", where, f"one of {known}: {value!r} would not be enforced")


def _parts(place: str, schema: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each schema within a schema, or within several, and its place."""
    if isinstance(schema, list | tuple):
        for index, one in enumerate(schema):
            yield from _parts(f"{place}/{index}", one)
    if not isinstance(schema, Mapping):
        return
    yield place, schema
    for keyword in (*_ONE, *_MANY):
        yield from _parts(f"{place}/{keyword}", schema.get(keyword))
    for keyword in _NAMED:
        if isinstance(named := schema.get(keyword), Mapping):
            for name, one in named.items():
                yield from _parts(f"{place}/{keyword}/{_escaped(name)}", one)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
