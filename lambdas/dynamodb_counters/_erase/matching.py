"""Which events are to be erased: those whose key fields have the given values, in whatever form a copy holds them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dynamodb_counters._declarations import Event
from dynamodb_counters._fold.records import NEW, OLD, Record
from dynamodb_counters._items.chunks import decode_chunk, encode_chunk
from dynamodb_counters._items.conditions import Image, text_reader
from dynamodb_counters._items.conversions import base64_text, key_text
from dynamodb_counters._items.table_schema import CHUNK, ONCE_SUFFIX, PACK_SUFFIX, PK, QUARANTINE, SK, TYPE
from dynamodb_counters._quarantine.quarantine_items import RECORD, pack, unpack
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError, UnparsableKeyError


class Wanted:
    """The events of a declaration with certain values in fields of their key."""

    def __init__(self, event: object, values: object) -> None:
        if not isinstance(event, Event):
            raise InvalidArgumentError("event", event, "an Event")
        if not isinstance(values, Mapping) or not values or not values.keys() <= set(event.fields):
            allowed = f"a value for one or more fields of the key: {', '.join(event.fields)}"
            raise InvalidArgumentError("values", values, allowed)
        self.event = event
        self.texts = {name: key_text(name, value) for name, value in event._canonical(values).items()}
        self.chunk_type = event.name + PACK_SUFFIX
        self._types = {event.name, event.name + ONCE_SUFFIX}
        self._readers = [(text_reader(name, literal=True), text) for name, text in self.texts.items()]

    def is_event(self, image: Image) -> bool:
        return image.get(TYPE, {}).get("S") in self._types and self.has_values(image)

    def has_values(self, image: Image) -> bool:
        try:
            return all(read(image) == text for read, text in self._readers)
        except MalformedImageError:
            return False

    def is_key(self, pk: str, sk: str) -> bool:
        """Whether a key alone shows that its item is one of the events."""
        event = self.event
        if self.texts.keys() >= set(event.fields):
            return (pk, sk) == (event._pk_template.render(self.texts), event._sk_template.render(self.texts))
        try:
            found = event._pk_template.parse(pk) | event._sk_template.parse(sk)
        except UnparsableKeyError:
            return False
        return all(found[name] == text for name, text in self.texts.items())

    def is_quoted_in(self, text: str) -> bool:
        """Whether a text that cannot be read otherwise names one of the values."""
        return any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) for value in self.texts.values())


def reduced(record: Record, wanted: Wanted) -> tuple[int, Record | None]:
    """How many of the events a record holds, and the record without them; None if nothing is left."""
    change = record["dynamodb"]
    images = {name: change[name] for name in (NEW, OLD) if isinstance(change.get(name), Mapping)}
    if not images:
        # Huge images are not kept, keys are.
        keys = change.get("Keys", {})
        is_wanted = PK in keys and SK in keys and wanted.is_key(keys[PK]["S"], keys[SK]["S"])
        return (1, None) if is_wanted else (0, record)
    parts = {name: _reduced_image(image, wanted) for name, image in images.items()}
    most = max(found for found, _ in parts.values())
    if not most:
        return 0, record
    left = {name: image for name, (_, image) in parts.items() if image is not None}
    if not left:
        return most, None
    others = {name: value for name, value in change.items() if name not in images}
    return most, {**record, "dynamodb": {**others, **left}}


def _reduced_image(image: Mapping[str, Any], wanted: Wanted) -> tuple[int, Mapping[str, Any] | None]:
    if wanted.is_event(image):
        return 1, None
    kind = image.get(TYPE, {}).get("S")
    if kind == wanted.chunk_type and CHUNK in image:
        return _reduced_chunk(image, wanted)
    if kind == QUARANTINE and RECORD in image:
        # An entry that could not be read when it was redriven is kept in an entry of its own.
        found, left = reduced(unpack(image[RECORD]), wanted)
        return found, None if left is None else {**image, RECORD: pack(left)}
    return 0, image


def _reduced_chunk(image: Mapping[str, Any], wanted: Wanted) -> tuple[int, Mapping[str, Any] | None]:
    chunk = decode_chunk(image[CHUNK])
    rows = chunk.all_rows()
    kept = [row for row in rows if not wanted.has_values(row.values)]
    if not kept:
        return (len(rows), None) if rows else (0, image)
    blob = base64_text(encode_chunk(kept, chunk.batch))
    return len(rows) - len(kept), {**image, CHUNK: {"B": blob}}
