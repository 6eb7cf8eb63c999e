"""Layouts: where packed events lie and for how long, which the table holds, so that all processes agree.

The first process that accepts such an event puts its layout into an item of the table. A name keeps its layout: whoever
declares another one is refused, before anything is written or read.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from dynamodb_counters._declarations import Event, Packed
from dynamodb_counters._items.bookkeeping import bookkeeping_item, put_as_seen
from dynamodb_counters._items.conditions import Image, text_reader
from dynamodb_counters._items.key_templates import key_template
from dynamodb_counters._items.table_schema import LAYOUT, MAX_SK_BYTES, PACK_PREFIX, PK, SK
from dynamodb_counters._table import Remembered, Table
from dynamodb_counters.errors import LayoutError

_LAYOUT: Final = "layout"
_PART_OF_TENANT: Final = key_template("{part}#{tenant}", MAX_SK_BYTES, "pk")


def part_of(packed: Packed, digest: bytes, values: Image) -> str:
    """The part of an event, and its tenant, as chunks are keyed by them."""
    number = 0
    if packed.parts > 1:
        text = digest if packed.partition_by is None else text_reader(packed.partition_by)(values).encode()
        number = int.from_bytes(hashlib.blake2b(text, digest_size=4).digest()) % packed.parts
    return _named(packed, number, values)


def all_parts(packed: Packed, values: Image) -> list[str]:
    """Those that events may be in of the tenant that the values name, if there are tenants."""
    return [_named(packed, number, values) for number in range(packed.parts)]


def _named(packed: Packed, number: int, values: Image) -> str:
    if packed.tenant is None:
        return str(number)
    return _PART_OF_TENANT.render({"part": number, "tenant": text_reader(packed.tenant)(values)})


class Layouts(Remembered):
    """Events of a table whose layout a process knows to be the table's."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._known = set[Event]()

    def require(self, event: Event, *, puts: bool = False) -> None:
        """`LayoutError` if the table has another layout; if it has none, it has this one from now on with `puts`."""
        if event in self._known:
            return
        declared, found = _text(event), self._text_of(event.name)
        if found is None and puts:
            key = {PK: {"S": PACK_PREFIX + event.name}, SK: {"S": LAYOUT}}
            item = bookkeeping_item(key, {_LAYOUT: declared})
            if not self._table.write("put_item", **put_as_seen(self._table.name, item, {}, ())):
                found = self._text_of(event.name)
        if found not in (None, declared):
            raise LayoutError(
                f"invalid packed={event.packed!r}: expected what the table has for {event.name!r}, {found}, instead of "
                f"{declared}; a name keeps its layout: give the changed event another name"
            )
        if found is not None or puts:
            self._known.add(event)

    def _text_of(self, name: str) -> str | None:
        return next((item[_LAYOUT]["S"] for item in self._table.partition(PACK_PREFIX + name, LAYOUT)), None)


def _text(event: Event) -> str:
    """All that decides where an event lies, and for how long."""
    packed = event.packed
    assert packed is not None
    layout = {
        "pk": event.pk,
        "sk": event.sk,
        "time": packed.time,
        "bucket": packed._bucket_seconds,
        "parts": packed.parts,
        "partition_by": packed.partition_by,
        "tenant": packed.tenant,
        "retention": None if event.retention is None else event.retention.total_seconds(),
    }
    return json.dumps(layout)
