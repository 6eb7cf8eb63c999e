"""Names and limits of the table, each defined once for runtime and infrastructure.

The limits are DynamoDB's: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final, TypeAlias

from dynamodb_counters.exactly_once import Watermark

_Typed: TypeAlias = Mapping[str, Any]  # An item, or attributes of one, with types.

PK: Final = "pk"  # Partition key of the table, a string.
SK: Final = "sk"  # Sort key, a string.
TTL: Final = "ttl"  # When DynamoDB may delete an item, in seconds since 1970.

RESERVED_PREFIX: Final = "_"  # Starts the bookkeeping's attribute names, which events, groups and measures cannot use.
TYPE: Final = "_type"  # The name of the declaration that wrote an item; the fold dispatches on it.
ONCE_SUFFIX: Final = "#once"  # Ends the type of an event that a transaction has counted: its record counts no more.
COUNTED_IN: Final = "_in"  # The names of the declarations in which a transaction has counted an event.
ERASED: Final = "_erased"
"""The attribute of a chunk with the digests of events that were erased, of 16 bytes each; of an event, a mark that it
is being erased and its counts are kept."""

PACK_SUFFIX: Final = "#pack"  # Ends the type of a chunk: an item that holds many events.
PACK_PREFIX: Final = "PACK#"  # Starts the partition keys of chunks.
LAYOUT: Final = "LAYOUT"  # Sort key of the item that holds where an event's chunks are.
CHUNK: Final = "_chunk"  # The attribute that holds a chunk's events.

LEADERBOARD: Final = "_board"  # Partition key of the ranking index: the leaderboard a group is on.
SCORE: Final = "_score"  # Sort key of the ranking index: the measure a group is ranked by.
RANKING_INDEX: Final = "ranking"  # Name of the global secondary index that leaderboards are read from.

PAGE_PREFIX: Final = "PAGE#"  # Starts the sort keys of pages, items that hold many groups of an aggregate.
LEVEL: Final = "_level"  # Splits of a page: that many first bits of a hash say which groups lie in it; missing for 0.
VERSION: Final = "_v"  # How many updates of a page there were.

BASELINE: Final = "_b"  # The watermark of an item's last part of a baseline; it stays, and the next run's is later.
REPAIRED: Final = "_r"  # The watermark of the last repair of an item: repairs are numbered from 1 on.

# Types of items that are no event's and no group's, as which no declaration can be named; what starts their keys.
CHECKPOINT: Final = "_checkpoint"
CROSSING: Final = "_crossing"  # In the outbox of thresholds.
QUARANTINE: Final = "quarantine"
QUOTA: Final = "_quota"  # What is reserved of a quota.
OWN_TYPES: Final = frozenset((CHECKPOINT, CROSSING, QUARANTINE, QUOTA))
CHECKPOINT_PREFIX: Final = "CHECKPOINT#"
RUN_PREFIX: Final = f"{CHECKPOINT_PREFIX}run~"  # Of a backfill's or verification's items.
CROSSING_PREFIX: Final = "CROSSING#"
QUARANTINE_PREFIX: Final = "QUARANTINE#"
LEASES_PREFIX: Final = "LEASES#"

MAX_LEASE_FIELDS: Final = 3  # Most fields of a quota's group.
MAX_PK_BYTES: Final = 2048  # Longest partition key, in UTF-8 bytes.
MAX_SK_BYTES: Final = 1024
MAX_NUMBER_DIGITS: Final = 38  # Most significant digits of a number.
SEQUENCE_DIGITS: Final = 40  # Sequence numbers (21 to 40 digits) are padded to it: string order is number order.
WRITE_UNIT_BYTES: Final = 1024
READ_UNIT_BYTES: Final = 4096
_CONTAINER_BYTES: Final = 3
# Type of an attribute and reader of its value, by Python's type.
_KINDS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "str": ("S", str),
    "float": ("N", float),
    "int": ("N", int),
    "bool": ("BOOL", bool),
    "bytes": ("B", bytes),
}


def is_reserved(attribute: str) -> bool:
    return attribute in (PK, SK, TTL) or attribute.startswith(RESERVED_PREFIX)


def bookkeeping_key(sk: str, partition: str = "") -> dict[str, Any]:
    return {PK: {"S": CHECKPOINT_PREFIX + partition}, SK: {"S": sk}}


def key_of(item: _Typed) -> dict[str, Any]:
    return {PK: item[PK], SK: item[SK]}


def bookkeeping_item(key: _Typed, values: Mapping[str, Any], expires: int | None = None) -> dict[str, Any]:
    """Return an item with these values, for good or until it expires, in seconds since 1970."""
    ttl = {} if expires is None else {TTL: expires}
    return {**key, **typed_values({TYPE: CHECKPOINT, **ttl, **values})}


def typed_values(values: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {name: _KINDS[type(value).__name__][0] for name, value in values.items()}
    return {name: {kind: str(values[name]) if kind == "N" else values[name]} for name, kind in kinds.items()}


def put_as_seen(table: str, new: _Typed, current: _Typed, names: Iterable[str]) -> dict[str, Any]:
    """Return PutItem's arguments if these attributes are as in `current`; if that is empty, there must be no item."""
    expected = {name: current.get(name) for name in names} if current else {PK: None}
    return {"TableName": table, "Item": dict(new), **_expressions({}, expected)}


def update_as_seen(table: str, key: _Typed, new: _Typed, expected: _Typed) -> dict[str, Any]:
    """Return UpdateItem's arguments, or DeleteItem's if nothing is `new`, on what is `expected`; None is no value."""
    return {"TableName": table, "Key": key, **_expressions(new, expected)}


def _expressions(new: _Typed, expected: _Typed) -> dict[str, Any]:
    names = {name: f"a{index}" for index, name in enumerate({**new, **expected})}
    sets = ", ".join(f"#{names[name]} = :new_{names[name]}" for name, value in new.items() if value is not None)
    removes = ", ".join(f"#{names[name]}" for name, value in new.items() if value is None)
    conditions = [
        f"attribute_not_exists(#{names[name]})" if value is None else f"#{names[name]} = :{names[name]}"
        for name, value in expected.items()
    ]
    values = {f":new_{names[name]}": value for name, value in new.items()}
    values |= {f":{names[name]}": value for name, value in expected.items()}
    parts = {
        "UpdateExpression": f"{sets and f'SET {sets} '}{removes and f'REMOVE {removes}'}",
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": {f"#{a}": name for name, a in names.items()},
        "ExpressionAttributeValues": {name: value for name, value in values.items() if value is not None},
    }
    return {name: part for name, part in parts.items() if part}


def conditional(request: _Typed, condition: str, names: Mapping[str, str], values: _Typed) -> dict[str, Any]:
    """Return an update on a further condition, with its placeholders."""
    return {
        **request,
        "ConditionExpression": " AND ".join(filter(None, (condition, request.get("ConditionExpression")))),
        "ExpressionAttributeNames": {**request["ExpressionAttributeNames"], **names},
        "ExpressionAttributeValues": {**request["ExpressionAttributeValues"], **values},
    }


def read_fields(cls: type, item: _Typed) -> dict[str, Any]:
    """Return a dataclass's plain fields, as far as the item has them; ValueError for one of another type."""
    kinds = {part.name: _KINDS[str(part.type)] for part in fields(cls) if part.type in _KINDS and part.name in item}
    for name, (kind, _) in kinds.items():
        if kind not in item[name]:
            raise ValueError(f"invalid {name}={item[name]!r:.80}: expected type {kind}")
    return {name: read(item[name][kind]) for name, (kind, read) in kinds.items()}


def sequence_of(value: _Typed) -> str:
    """Return the padded sequence number of a watermark; raise an error if it is none."""
    return str(Watermark.read(value)[0]).zfill(SEQUENCE_DIGITS)


def write_units(size: float) -> float:
    return float(max(1, math.ceil(size / WRITE_UNIT_BYTES)))


def read_units(items: Iterable[_Typed], *, consistent: bool = False) -> float:
    """Return the units of a page of items: one per started 4 KB of all of them, half of that unless consistent."""
    return max(1, math.ceil(sum(map(item_bytes, items)) / READ_UNIT_BYTES)) * (1.0 if consistent else 0.5)


def item_bytes(item: _Typed) -> int:
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: _Typed) -> int:
    [(kind, content)] = value.items()
    match kind:
        case "S" | "B":
            return len(content.encode() if kind == "S" else content)
        case "N":
            digits = content.lstrip("-").replace(".", "").strip("0")
            return (len(digits) + 1) // 2 + 1 + int(content.startswith("-"))
        case "SS" | "NS" | "BS":
            return sum(_value_bytes({kind[0]: member}) for member in content)
        case "L":
            return _CONTAINER_BYTES + sum(1 + _value_bytes(member) for member in content)
        case "M":
            return _CONTAINER_BYTES + len(content) + item_bytes(content)
    return 1
