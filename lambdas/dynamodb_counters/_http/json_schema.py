"""JSON Schema validation of event attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import fastjsonschema

from dynamodb_counters.errors import InvalidArgumentError

SchemaCheck: TypeAlias = Callable[[Mapping[str, Any]], str | None]
"""Returns the first violation of the schema by an event's attributes, or None."""


def compile_schema(schema: Mapping[str, Any] | None) -> SchemaCheck:
    """Compile a self-contained schema; None accepts everything.

    >>> compile_schema({"required": ["url"]})({})
    "data must contain ['url'] properties"
    """
    if schema is None:
        return lambda _: None
    try:
        # No defaults: validation must not change what was sent.
        validate = fastjsonschema.compile(
            dict(schema), handlers=dict.fromkeys(("http", "https", "file"), _reject_reference), use_default=False
        )
    except Exception as error:
        # The compiler raises errors of many types; the cause is always the schema.
        raise InvalidArgumentError("schema", schema, f"a JSON Schema of draft 4, 6 or 7 ({error})") from error

    def check(attributes: Mapping[str, Any]) -> str | None:
        try:
            validate(dict(attributes))
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message)
        return None

    return check


def _reject_reference(uri: str) -> None:
    raise ValueError(f"reference to an external document: {uri}")
