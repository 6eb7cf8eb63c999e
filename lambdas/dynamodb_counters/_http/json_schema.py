"""JSON Schema validation of event attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import fastjsonschema
from fastjsonschema.draft07 import CodeGeneratorDraft07

from dynamodb_counters._http.schema_keywords import require_enforced
from dynamodb_counters.errors import InvalidArgumentError

SchemaCheck: TypeAlias = Callable[[Mapping[str, Any]], str | None]
"""Returns the first violation of the schema by an event's attributes, or None."""

_MAX_EMAIL: Final = 320
_EMAILS: Final = {name: re.compile(CodeGeneratorDraft07.FORMAT_REGEXS[name]) for name in ("email", "idn-email")}


def compile_schema(schema: Mapping[str, Any] | None) -> SchemaCheck:
    """Compile a self-contained schema, all of which is enforced; None accepts everything.

    >>> compile_schema({"required": ["url"]})({})
    "data must contain ['url'] properties"
    """
    if schema is None:
        return lambda _: None
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
        raise InvalidArgumentError("schema", schema, f"a JSON Schema of draft 4, 6 or 7 ({error})") from error
    require_enforced(schema, _EMAILS)

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
