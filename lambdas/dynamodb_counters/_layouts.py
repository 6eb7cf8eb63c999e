"""Where packed events lie, by a layout that the table holds; and groups in pages, by levels that a process has learned.

The first process that accepts such an event puts its layout into an item of the table, so that all processes agree. A
name keeps its layout: whoever declares another one is refused, before anything is written or read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from dynamodb_counters._declarations import Event, Packed
from dynamodb_counters._fold.layouts import BITS, Page, level_of
from dynamodb_counters._items.conditions import Image, text_reader
from dynamodb_counters._items.keys import key_template
from dynamodb_counters._items.schema import LAYOUT, MAX_SK_BYTES, PACK_PREFIX, PK, SK, bookkeeping_item, put_as_seen
from dynamodb_counters._table import Remembered, Table
from dynamodb_counters.errors import InvalidArgumentError

_LAYOUT: Final = "layout"
_PART_OF_TENANT: Final = key_template("{part}#{tenant}", MAX_SK_BYTES, "pk")

_MOST_KNOWN: Final = 100_000


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
        """Refuse an event if the table has another layout; if it has none, it has this one from now on with `puts`."""
        if event in self._known:
            return
        declared, found = _text(event), self._text_of(event.name)
        if found is None and puts:
            key = {PK: {"S": PACK_PREFIX + event.name}, SK: {"S": LAYOUT}}
            item = bookkeeping_item(key, {_LAYOUT: declared})
            if not self._table.write("put_item", **put_as_seen(self._table.name, item, {}, ())):
                found = self._text_of(event.name)
        if found not in (None, declared):
            allowed = f"what the table has for {event.name!r}, {found}, instead of {declared}"
            cure = "a name keeps its layout: give the changed event another name"
            raise InvalidArgumentError("packed", event.packed, f"{allowed}; {cure}")
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


class PageLevels(Remembered):
    """Levels of one table's pages: guesses, which a page that is asked corrects."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._known: dict[tuple[str, str, int], int] = {}
        self._latest: dict[tuple[str, str], int] = {}
        self._guessed: set[tuple[str, str, int]] = set()
        """Pages whose level is known to be less only because another one is not there."""
        self._lost: set[tuple[str, str, int]] = set()
        """Pages that are not there, though the page that each has split off from says so."""

    def clear(self) -> None:
        """Forget all pages, as a name may have been emptied and filled anew."""
        self.__init__(self._table)  # type: ignore[misc]

    def locate(self, name: str, shelf: str, number: int) -> Page:
        """The page in which a hash lies as far as is known; an unknown level is taken to be the latest one met."""
        known, level = self._known, self._latest.get((name, shelf), 0)
        # Pages differ by few levels: one that is known may hold it all the same.
        near = range(level + 3)
        level = next((each for each in near if known.get((name, shelf, _first(number, each))) == each), level)
        while (there := known.get((name, shelf, _first(number, level)), level)) > level:
            # On to the page that split off before the hashes part.
            level = min(there, BITS + 1 - (number ^ _first(number, level)).bit_length())
        first = _first(number, level)
        return Page(shelf, first, level, (name, shelf, first) in self._lost)

    def learn(self, name: str, page: Page, item: Mapping[str, Any] | None) -> bool:
        """Take note of a page that was asked; return whether it is there at the level that was guessed.

        The page of level 0 is there before its first update. One that is not there, though it has split off, has
        expired, or a restore lacks it: the next update creates it.
        """
        asked = (name, page.shelf, page.first)
        if item or not page.first:
            self._lost.discard(asked)
            self._note(asked, level_of(item or {}))
            return level_of(item or {}) == page.level
        born = _born(page.first)
        before = (name, page.shelf, _first(page.first, born - 1))
        self._known.pop(asked, None)
        if self._known.get(before, 0) >= born and before not in self._guessed:
            self._lost.add(asked)
            return page.is_lost
        # Its groups are still with the page that it is to split off from, of whatever level.
        self._note(before, born - 1, is_guess=True)
        return False

    def _note(self, page: tuple[str, str, int], level: int, *, is_guess: bool = False) -> None:
        if len(self._known) >= _MOST_KNOWN:
            self.clear()
        self._known[page] = self._latest[page[:2]] = level
        (self._guessed.add if is_guess else self._guessed.discard)(page)


def _first(number: int, level: int) -> int:
    """The first hash that begins with as many bits of another."""
    return number >> BITS - level << BITS - level


def _born(first: int) -> int:
    """The level at which a page came into being: it begins with that many bits, of which the last is 1."""
    return BITS + 1 - (first & -first).bit_length()
