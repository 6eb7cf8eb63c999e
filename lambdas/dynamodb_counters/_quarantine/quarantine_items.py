"""Quarantine items: an image that could not be folded, or a delta that its item could not take. Pure."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import base64_text, binary
from dynamodb_counters._items.table_schema import PK, QUARANTINE, QUARANTINE_PREFIX, SK, TTL, TYPE

STATE: Final = "state"
WAITING: Final = "waiting"
REDRIVEN: Final = "released"
DISCARDED: Final = "discarded"
SETTLED: Final = "settled"
"""A backfill has replaced all that it waited for."""
PROVISIONAL: Final = "provisional"
"""A backfill has met the image: it waits once that is known to be what the baseline lacks."""

STATES: Final = {WAITING: "waiting", REDRIVEN: "redriven", DISCARDED: "discarded", SETTLED: "settled"}
"""States that a person sees, by how they are stored."""

CHANGED_AT: Final = "changed_at"
"""When an entry was redriven or discarded."""

REASON: Final = "reason"
RECORD: Final = "record"
DELTA: Final = "sum"

NAMES: Final = "names"
"""The declarations that an image waits for; an entry without is one of all."""

PARTITIONS: Final = tuple(f"{QUARANTINE_PREFIX}{number}" for number in range(32))
"""Partition keys of the quarantine."""

MAX_REASON: Final = 1000

# An item is 400 KB at most; keys, reason and bookkeeping take the rest.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_CONTENT_BYTES: Final = 380_000
_PLAIN_BYTES: Final = 32_000

UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, zlib.error)
"""Errors of reading an item that was edited by hand."""

_QUARANTINE: Final = {"S": QUARANTINE}
_WAITING: Final = {"S": WAITING}
_REDRIVEN: Final = {"S": REDRIVEN}


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An entry of the quarantine: an image that could not be counted, or a delta that its item could not take.

    Parameters
    ----------
    shard : str
        Stream shard of the record.
    sequence : str
        Sequence number of the record in that shard, padded to 40 digits.
    reason : str
        Why it could not be counted.
    content : dict
        The stream record with the one image that could not be folded; or, if an item could not take a delta,
        the declaration's ``name``, the ``group`` and the ``numbers``.
    names : tuple of str
        The declarations that could not count the image, while the others did; empty if none did, or for a delta.
    redriven : bool
        Whether it was redriven.
    key : tuple of str
        Partition and sort key of the quarantine item.
    """

    shard: str
    sequence: str
    reason: str
    content: dict[str, Any]
    names: tuple[str, ...]
    redriven: bool
    key: tuple[str, str]


def quarantine_key(shard: str, entry_id: str) -> dict[str, Any]:
    """Spread, so that a flood of entries meets no hot key."""
    sk = f"{shard}#{entry_id}"
    return {PK: {"S": PARTITIONS[zlib.crc32(sk.encode()) % len(PARTITIONS)]}, SK: {"S": sk}}


def quarantine_item(
    key: Mapping[str, Any], reason: str, content: Mapping[str, Any], names: Sequence[str], expires_at: int
) -> dict[str, Any]:
    """Typed item of an entry; `content` is the attribute that holds the record or the delta."""
    return {
        **key,
        TYPE: _QUARANTINE,
        TTL: {"N": str(expires_at)},
        STATE: _WAITING,
        REASON: {"S": reason[:MAX_REASON]},
        **({NAMES: {"SS": list(names)}} if names else {}),
        **content,
    }


def read_quarantine_item(item: Mapping[str, Any]) -> Quarantined:
    """The entry that an item holds; one that is spoiled has no content."""
    shard, sequence = [*item[SK]["S"].split("#"), ""][:2]
    reason = str(item.get(REASON, {}).get("S", ""))
    try:
        content, names = unpack(item[DELTA] if DELTA in item else item[RECORD]), names_of(item)
    except UNREADABLE as error:
        content, names, reason = {}, (), f"{type(error).__name__}: the entry cannot be read. {reason}"
    key = item[PK]["S"], item[SK]["S"]
    return Quarantined(shard, sequence, reason, content, names, item[STATE] == _REDRIVEN, key)


def awaited_by(item: Mapping[str, Any]) -> tuple[str, ...]:
    """The declarations that an entry waits for; none for one of all declarations, and for one that cannot be read."""
    try:
        return (str(unpack(item[DELTA])["name"]),) if DELTA in item else names_of(item)
    except UNREADABLE:
        return ()


def names_of(item: Mapping[str, Any]) -> tuple[str, ...]:
    """The names an entry has; one without is of all declarations."""
    return tuple(sorted(item[NAMES]["SS"])) if NAMES in item else ()


def changed_at(item: Mapping[str, Any]) -> float:
    """When an entry was redriven or discarded; 0 if never."""
    return float(item.get(CHANGED_AT, {}).get("N", 0))


def redriven_item(change: Mapping[str, Any]) -> Image | None:
    """New image of a quarantine item if this change, the ``dynamodb`` part of a record, redrives it; else None."""
    new, old = change.get("NewImage"), change.get("OldImage")
    if not isinstance(new, dict) or new.get(TYPE) != _QUARANTINE or not isinstance(old, dict):
        return None
    redriven = old.get(TYPE) == _QUARANTINE and old.get(STATE) == _WAITING and new.get(STATE) == _REDRIVEN
    return new if redriven else None


def pack(content: Mapping[str, Any]) -> dict[str, str | bytes]:
    """Typed JSON, compressed if long; a record too large for an item keeps its keys only."""
    text = json.dumps(content, default=_plain, separators=(",", ":"))
    if len(text) <= _PLAIN_BYTES:
        return {"S": text}
    packed = zlib.compress(text.encode(), 9)
    if len(packed) <= MAX_CONTENT_BYTES:
        return {"B": packed}
    kept = {name: value for name, value in content["dynamodb"].items() if not name.endswith("Image")}
    return {"S": json.dumps({**content, "dynamodb": kept}, default=_plain, separators=(",", ":"))}


def unpack(value: Mapping[str, Any]) -> dict[str, Any]:
    """Undo `pack`; binary comes as bytes or, in a stream record, as base64 text."""
    content = json.loads(value["S"] if "S" in value else zlib.decompress(binary(value["B"])))
    if not isinstance(content, dict):
        raise TypeError("expected a JSON object")
    return content


def _plain(value: Any) -> str:
    return base64_text(value) if isinstance(value, bytes | bytearray) else str(value)
