"""What a quarantine item holds: a record's image that could not be folded, or a sum that an item could not take.

Releasing it is a change of its `STATE`, and the stream record of that change stands for what the item holds. So a
redrive is folded and committed like everything else, exactly once, however often it is asked for or delivered.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.table_schema import QUARANTINE, QUARANTINE_PREFIX, TYPE

STATE: Final = "state"
WAITING: Final = "waiting"
RELEASED: Final = "released"

RECORD: Final = "record"
SUM: Final = "sum"

# An item is 400 KB at most; keys, reason and bookkeeping take the rest.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_CONTENT_BYTES: Final = 380_000
_PLAIN_BYTES: Final = 32_000

_QUARANTINE: Final = {"S": QUARANTINE}
_WAITING: Final = {"S": WAITING}
_RELEASED: Final = {"S": RELEASED}

PARTITIONS: Final = 8
"""Quarantine items are spread over so many partition keys: one shard's are together, many shards' are not."""


def partition(number: int) -> str:
    """Give the partition key of a part of the quarantine.

    Parameters
    ----------
    number : int
        0 to `PARTITIONS` - 1.

    Returns
    -------
    str
        Partition key.
    """
    return f"{QUARANTINE_PREFIX}{number}"


def partition_of(shard: str) -> str:
    """Give the partition key under which a shard's records are.

    Parameters
    ----------
    shard : str
        Shard id.

    Returns
    -------
    str
        Partition key.
    """
    return partition(zlib.crc32(shard.encode()) % PARTITIONS)


def pack(content: Mapping[str, Any]) -> dict[str, str | bytes]:
    """Type some content for an attribute, compressed where it is long.

    Parameters
    ----------
    content : mapping
        Plain JSON values, and what JSON does not know as its text.

    Returns
    -------
    dict
        ``{"S": json}`` or ``{"B": compressed}``. A record too large for an item keeps its keys only.
    """
    text = json.dumps(content, default=_plain, separators=(",", ":"))
    if len(text) <= _PLAIN_BYTES:
        return {"S": text}
    packed = zlib.compress(text.encode(), 9)
    if len(packed) <= MAX_CONTENT_BYTES:
        return {"B": packed}
    kept = {name: value for name, value in content["dynamodb"].items() if not name.endswith("Image")}
    return {"S": json.dumps({**content, "dynamodb": kept}, default=_plain, separators=(",", ":"))}


def unpack(value: Mapping[str, Any]) -> dict[str, Any]:
    """Undo `pack`.

    Parameters
    ----------
    value : mapping
        Typed attribute; binary as bytes or, as in a stream record, base64 text.

    Returns
    -------
    dict
        The content.
    """
    if "S" in value:
        content: dict[str, Any] = json.loads(value["S"])
    else:
        packed = value["B"]
        content = json.loads(zlib.decompress(base64.b64decode(packed) if isinstance(packed, str) else bytes(packed)))
    return content


def released(change: Mapping[str, Any]) -> Image | None:
    """Give the quarantine item that a change releases.

    Parameters
    ----------
    change : mapping
        The ``dynamodb`` part of a stream record.

    Returns
    -------
    mapping or None
        The item's image when this very change turned it from waiting to released.
    """
    new, old = change.get("NewImage"), change.get("OldImage")
    if not isinstance(new, dict) or new.get(TYPE) != _QUARANTINE or not isinstance(old, dict):
        return None
    turned = old.get(TYPE) == _QUARANTINE and old.get(STATE) == _WAITING and new.get(STATE) == _RELEASED
    return new if turned else None


def _plain(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes | bytearray) else str(value)
