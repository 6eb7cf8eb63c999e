"""Attributes of events as JSON Schema, for who sends them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from dynamodb_counters._declarations.event_attributes import Attribute
from dynamodb_counters._items.decimals import Number

_TYPES: Final = {str: "string", int: "integer", Decimal: "number", bool: "boolean", list: "array", dict: "object"}
_LIMITS: Final = ("pattern", "format", "minimum", "maximum")


def json_schema(attributes: Mapping[str, Attribute], *, openapi: bool = False) -> dict[str, Any]:
    """The schema of an object with these attributes, in draft 7; or with `openapi` as OpenAPI 3.0 has it.

    >>> json_schema({"plan": Attribute(str, one_of=["free", "pro"])})["properties"]
    {'plan': {'type': 'string', 'enum': ['free', 'pro']}}
    """
    required = [name for name, attribute in attributes.items() if attribute.required]
    return {
        "type": "object",
        # OpenAPI forbids an empty one.
        **({"required": required} if required else {}),
        "properties": {name: _schema(attribute, openapi=openapi) for name, attribute in attributes.items()},
    }


def _schema(attribute: Attribute, *, openapi: bool) -> dict[str, Any]:
    if attribute.attributes is not None:
        schema = json_schema(attribute.attributes, openapi=openapi)
    else:
        # Binary cannot be sent as JSON; what is read back is base64.
        kind = "string" if attribute.type is bytes else _TYPES.get(attribute.type)
        schema = {} if kind is None else {"type": kind}
    given = {name: getattr(attribute, name) for name in _LIMITS}
    schema |= {name: _plain(value) for name, value in given.items() if value is not None}
    unit = "Items" if attribute.type is list else "Length"
    for word, length in (("min", attribute.min_length), ("max", attribute.max_length)):
        if length is not None:
            schema[f"{word}{unit}"] = length
    if attribute.one_of:
        schema["enum"] = list(map(_plain, attribute.one_of))
    if attribute.type is list:
        schema["items"] = {} if attribute.of is None else _schema(attribute.of, openapi=openapi)
    if attribute.required or not schema:
        return schema
    return {**schema, "nullable": True} if openapi else {"anyOf": [schema, {"type": "null"}]}


def _plain(value: str | Number) -> str | int | float:
    return float(value) if isinstance(value, Decimal) else value
