"""Keywords of JSON Schema that are enforced: any other one would be ignored, and what it says would not hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fastjsonschema.draft04 import CodeGeneratorDraft04
from fastjsonschema.draft06 import CodeGeneratorDraft06
from fastjsonschema.draft07 import CodeGeneratorDraft07

from dynamodb_counters.errors import InvalidArgumentError

_DRAFTS: Final = {"draft-07": CodeGeneratorDraft07, "draft-06": CodeGeneratorDraft06, "draft-04": CodeGeneratorDraft04}
"""Compilers of the schemas of each draft; the first one compiles a schema that names no draft."""

_WITH_OTHERS: Final = {
    "additionalItems": "items",
    "else": "if",
    "exclusiveMaximum": "maximum",
    "exclusiveMinimum": "minimum",
    "then": "if",
}
"""Keywords that are enforced only next to another one."""

_DESCRIBING: Final = re.compile(
    r"\$comment|\$defs|\$id|\$schema|default|definitions|deprecated|description|examples|id|readOnly|title|writeOnly|x-.*"
)
"""Keywords that enforce nothing, and are not meant to."""

_ONE: Final = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
)
_MANY: Final = ("allOf", "anyOf", "items", "oneOf")
_NAMED: Final = ("$defs", "definitions", "dependencies", "patternProperties", "properties")


def require_enforced(schema: Mapping[str, Any], own_formats: Iterable[str]) -> None:
    """Refuse what no event would be checked for, by its place as a JSON pointer."""
    said = str(schema.get("$schema", next(iter(_DRAFTS))))
    draft = next((name for name in _DRAFTS if name in said), None)
    if draft is None:
        raise InvalidArgumentError("schema", "#/$schema", f"{', '.join(_DRAFTS)} or none, but it is {said!r}")
    checker = _DRAFTS[draft]({})  # type: ignore[no-untyped-call]
    # The compiler skips what is not in this table, and says nothing.
    enforced = {"$ref", *checker._json_keywords_to_function}  # noqa: SLF001
    formats = {*checker.FORMAT_REGEXS, *own_formats, "regex"}
    for place, part in _parts("#", schema):
        for keyword, value in part.items():
            if _DESCRIBING.fullmatch(keyword):
                continue
            refused = f"{place}/{_escaped(keyword)}"
            if keyword not in enforced and not {_WITH_OTHERS.get(keyword)} & enforced & part.keys():
                raise InvalidArgumentError("schema", refused, f"a keyword of {draft}: this one would not be enforced")
            if "$ref" in part and keyword != "$ref":
                raise InvalidArgumentError(
                    "schema", refused, "nothing next to $ref: it would not be enforced; use allOf"
                )
            if keyword == "format" and value not in formats:
                known = ", ".join(sorted(formats))
                raise InvalidArgumentError("schema", refused, f"one of {known}: {value!r} would not be enforced")


def _parts(place: str, schema: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each schema within a schema, and its place."""
    if not isinstance(schema, Mapping):
        return
    yield place, schema
    for keyword in _ONE:
        yield from _parts(f"{place}/{keyword}", schema.get(keyword))
    for keyword in _MANY:
        if isinstance(several := schema.get(keyword), list | tuple):
            for index, one in enumerate(several):
                yield from _parts(f"{place}/{keyword}/{index}", one)
    for keyword in _NAMED:
        if isinstance(named := schema.get(keyword), Mapping):
            for name, one in named.items():
                yield from _parts(f"{place}/{keyword}/{_escaped(name)}", one)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
