"""Stream records that something keeps: what is left of one without the erased events. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dynamodb_counters._erase.matching import Wanted, type_of
from dynamodb_counters._fold.records import NEW, OLD, Record
from dynamodb_counters._items.chunks import decode_chunk, encode_chunk
from dynamodb_counters._items.table_schema import CHUNK, PK, QUARANTINE, SK
from dynamodb_counters._quarantine.quarantine_items import RECORD, pack, unpack


@dataclass(frozen=True, slots=True)
class Reduced:
    """How many of the events a record holds, and the record without them; None if nothing is left."""

    found: int
    left: Record | None


def reduced(record: Record, wanted: Wanted) -> Reduced:
    change = record["dynamodb"]
    images = {name: change[name] for name in (NEW, OLD) if isinstance(change.get(name), Mapping)}
    if not images:
        # Huge images are not kept, keys are.
        keys = change.get("Keys", {})
        is_wanted = PK in keys and SK in keys and wanted.is_key(keys[PK]["S"], keys[SK]["S"])
        return Reduced(1, None) if is_wanted else Reduced(0, record)
    parts = {name: _reduced_image(image, wanted) for name, image in images.items()}
    found = max(part.found for part in parts.values())
    if not found:
        return Reduced(0, record)
    left = {name: part.left for name, part in parts.items() if part.left is not None}
    if not left:
        return Reduced(found, None)
    others = {name: value for name, value in change.items() if name not in images}
    return Reduced(found, {**record, "dynamodb": {**others, **left}})


def reduced_records(records: Iterable[Record], wanted: Wanted) -> tuple[int, list[Record]]:
    """How many of the events they hold, and what is left of them."""
    parts = [reduced(record, wanted) for record in records]
    return sum(part.found for part in parts), [part.left for part in parts if part.left is not None]


def _reduced_image(image: Mapping[str, Any], wanted: Wanted) -> Reduced:
    if wanted.is_event(image):
        return Reduced(1, None)
    if type_of(image) == wanted.chunk_type and CHUNK in image:
        return _reduced_chunk(image, wanted)
    if type_of(image) == QUARANTINE and RECORD in image:
        # An entry that could not be read when it was redriven is kept in an entry of its own.
        inner = reduced(unpack(image[RECORD]), wanted)
        left = None if inner.left is None else {**image, RECORD: pack(inner.left)}
        return Reduced(inner.found, left)
    return Reduced(0, image)


def _reduced_chunk(image: Mapping[str, Any], wanted: Wanted) -> Reduced:
    chunk = decode_chunk(image[CHUNK])
    rows = chunk.all_rows()
    kept = [row for row in rows if not wanted.has_values(row.values)]
    if not kept:
        return Reduced(len(rows), None) if rows else Reduced(0, image)
    blob = base64.b64encode(encode_chunk(kept, chunk.batch, is_last=chunk.is_last)).decode()
    return Reduced(len(rows) - len(kept), {**image, CHUNK: {"B": blob}})
