"""Bookkeeping on items: watermarks, keys and sizes of items. Pure.

A watermark is the last record of a stream shard that an item has applied. An item pays for it in every write, so it is
compact: ``_w`` and 72 bits of the shard id's digest, and the sequence number as binary, which DynamoDB orders like the
number.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from dynamodb_counters._items.table_schema import (
    CHECKPOINT,
    CHECKPOINT_PREFIX,
    PK,
    SEQUENCE_DIGITS,
    SK,
    TTL,
    TYPE,
    WATERMARK_PREFIX,
)

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


def delete_as_seen(
    table: str, key: Mapping[str, Any], seen: Mapping[str, Any], compared: Iterable[str]
) -> dict[str, Any]:
    """DeleteItem's arguments if some attributes are `compared` with what was seen."""
    return {"TableName": table, "Key": key, **_expressions({}, {name: seen.get(name) for name in compared})}


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


def read_fields(cls: type, item: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a dataclass's plain fields, as far as the item has them; ValueError for one of another type."""
    plain = {
        field.name: _KINDS[str(field.type)] for field in fields(cls) if field.type in _KINDS and field.name in item
    }
    for name, (kind, _) in plain.items():
        if kind not in item[name]:
            raise ValueError(f"invalid {name}={item[name]!r:.80}: expected type {kind}")
    return {name: read(item[name][kind]) for name, (kind, read) in plain.items()}


_DIGEST_BYTES: Final = 9


def shard_digest(shard: str) -> str:
    """Name of a shard in watermarks and checkpoints.

    >>> shard_digest("shardId-00000001414576573621-f55eea83")
    'ly2uFlpcxkp3'
    """
    return base64.urlsafe_b64encode(hashlib.sha256(shard.encode()).digest()[:_DIGEST_BYTES]).decode()


class Watermark:
    """How the items of one shard hold its watermark."""

    __slots__ = ("name", "shard")

    def __init__(self, shard: str) -> None:
        self.shard = shard
        self.name = WATERMARK_PREFIX + shard_digest(shard)

    def values(self, *sequences: str) -> list[dict[str, Any]]:
        """Attributes that say that padded sequence numbers are the last applied."""
        return [{"B": packed(sequence)} for sequence in sequences]

    def of(self, item: Mapping[str, Any]) -> str:
        """The padded sequence number in an item that has the watermark; an error if it is spoiled."""
        return sequence_of(item[self.name])


def packed(sequence: str) -> bytes:
    """A length byte and the number's bytes, so that the order of bytes is that of numbers.

    >>> packed("0000000000000000000000000000000000000258").hex()
    '020102'
    """
    number = int(sequence)
    content = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes([len(content)]) + content


def sequence_of(value: Mapping[str, Any]) -> str:
    """The padded sequence number of a watermark; an error if it is none."""
    length, *content = value["B"]
    if length != len(content):
        raise ValueError(f"invalid watermark {value['B']!r:.80}: expected a length byte and as many bytes")
    return str(int.from_bytes(bytes(content), "big")).zfill(SEQUENCE_DIGITS)


WRITE_UNIT_BYTES: Final = 1024
READ_UNIT_BYTES: Final = 4096
MAX_ITEM_BYTES: Final = 400 * 1024
"""https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html"""

INDEX_UNITS: Final = 2.0
"""Write units of a changed key of an index: an entry is deleted, another one put."""

_CONTAINER_BYTES: Final = 3


def write_units(size: float) -> float:
    """Write units of an item of that many bytes."""
    return float(max(1, math.ceil(size / WRITE_UNIT_BYTES)))


def read_units(items: Iterable[Mapping[str, Mapping[str, Any]]], *, consistent: bool = False) -> float:
    """Read units of a page of items: one per started 4 KB of all of them, half of that unless consistent."""
    return max(1, math.ceil(sum(map(item_bytes, items)) / READ_UNIT_BYTES)) * (1.0 if consistent else 0.5)


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Bytes of names and values."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    [(kind, content)] = value.items()
    size = 1
    match kind:
        case "S" | "B":
            size = len(content.encode() if kind == "S" else content)
        case "N":
            digits = content.lstrip("-").replace(".", "").strip("0")
            size = (len(digits) + 1) // 2 + 1 + content.startswith("-")
        case "SS" | "NS" | "BS":
            size = sum(_value_bytes({kind[0]: member}) for member in content)
        case "L":
            size = _CONTAINER_BYTES + sum(1 + _value_bytes(member) for member in content)
        case "M":
            size = _CONTAINER_BYTES + len(content) + item_bytes(content)
    return size
