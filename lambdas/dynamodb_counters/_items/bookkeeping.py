"""Bookkeeping items: their keys, and their plain values as typed attributes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from dynamodb_counters._items.table_schema import CHECKPOINT, CHECKPOINT_PREFIX, PK, SK, TTL, TYPE

_KINDS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "str": ("S", str),
    "float": ("N", float),
    "int": ("N", int),
    "bool": ("BOOL", bool),
    "bytes": ("B", bytes),
}
"""Type of an attribute and reader of its value, by Python's type."""


def bookkeeping_key(sk: str, partition: str = "") -> dict[str, Any]:
    return {PK: {"S": CHECKPOINT_PREFIX + partition}, SK: {"S": sk}}


def bookkeeping_item(key: Mapping[str, Any], values: Mapping[str, Any], expires: int | None = None) -> dict[str, Any]:
    """An item with these values, for good or until it expires, in seconds since 1970."""
    ttl = {} if expires is None else {TTL: expires}
    return {**key, **typed_values({TYPE: CHECKPOINT, **ttl, **values})}


def typed_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes that hold texts, numbers, truth values and binaries."""
    kinds = {name: _KINDS[type(value).__name__][0] for name, value in values.items()}
    return {name: {kind: str(values[name]) if kind == "N" else values[name]} for name, kind in kinds.items()}


def put_as_seen(table: str, new: Mapping[str, Any], seen: Mapping[str, Any], compared: Iterable[str]) -> dict[str, Any]:
    """PutItem's arguments if some attributes are `compared` with what was seen; if nothing was, there must be none."""
    known = {name: seen.get(name) for name in compared} if seen else {PK: None}
    return {"TableName": table, "Item": dict(new), **_expressions({}, known)}


def update_as_seen(
    table: str, key: Mapping[str, Any], new: Mapping[str, Any], seen: Mapping[str, Any]
) -> dict[str, Any]:
    """UpdateItem's arguments: attributes become `new` if others are as they were `seen`; None stands for no value."""
    return {"TableName": table, "Key": key, **_expressions(new, seen)}


def _expressions(new: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    names = {name: f"a{index}" for index, name in enumerate({**new, **seen})}
    sets = ", ".join(f"#{names[name]} = :new_{names[name]}" for name, value in new.items() if value is not None)
    removes = ", ".join(f"#{names[name]}" for name, value in new.items() if value is None)
    conditions = [
        f"attribute_not_exists(#{names[name]})" if value is None else f"#{names[name]} = :{names[name]}"
        for name, value in seen.items()
    ]
    values = {f":new_{names[name]}": value for name, value in new.items()}
    values |= {f":{names[name]}": value for name, value in seen.items()}
    parts = {
        "UpdateExpression": f"{sets and f'SET {sets} '}{removes and f'REMOVE {removes}'}",
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": {f"#{a}": name for name, a in names.items()},
        "ExpressionAttributeValues": {name: value for name, value in values.items() if value is not None},
    }
    return {name: part for name, part in parts.items() if part}


def read_value(item: Mapping[str, Any], name: str, kind: str, default: Any = None) -> Any:
    """An attribute as a value of a Python type; ValueError if it is of another type."""
    key, read = _KINDS[kind]
    if name not in item:
        return default
    if key not in item[name]:
        raise ValueError(f"invalid {name}={item[name]!r:.80}: expected type {key}")
    return read(item[name][key])


def read_fields(cls: type, item: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a dataclass's plain fields, as far as the item has them."""
    plain = {field.name: str(field.type) for field in fields(cls) if field.type in _KINDS}
    return {name: read_value(item, name, kind) for name, kind in plain.items() if name in item}
