"""Discards: entries of the quarantine that are never to be counted, nor taken back when their items change.

An image that its item still shows is marked there, in the transaction that discards the entry: from then on the item
counts nothing where the mark names. An image that its item shows no more has left it, too: if that change waits as
well, both are discarded together. Otherwise it was taken back already, or will be, so only a redrive makes that right.
The rows of chunks have no marks: only such pairs of them are discarded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._fold.records import NEW, OLD, Origins
from dynamodb_counters._items.bookkeeping import image_digest, marks_of, stored_marks, update_as_seen
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.table_schema import NOT_IN, PK, SK
from dynamodb_counters._quarantine.quarantine import DISCARDED, WAITING, Quarantined
from dynamodb_counters._quarantine.redrive_entries import list_quarantined, state_request, stored_key
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError

DOUBTFUL: Final = "#DOUBTFUL"

_MOST_ATTRIBUTES: Final = 100
"""Most marks of an item: a condition names each of them."""

_Known: TypeAlias = tuple[str, tuple[str, ...], str]
"""An image that waits: which of the two it is, for which declarations, and its digest."""


class Discards:
    def __init__(self, table: Table) -> None:
        self._table = table
        self._origins = Origins(table.name, read_registry(table).source or None)
        self._waiting: dict[_Known, list[Quarantined]] | None = None
        self._done: set[tuple[str, str]] = set()

    def discard(self, entry: Quarantined) -> bool:
        """Discard an entry, which stays for a record that comes again; False if it or its item has changed."""
        if entry.key in self._done:
            return True
        if "numbers" in entry.content:
            raise _refusal(entry, "an image: a redrive adds a delta, once its item can take it")
        name, image = _image(entry)
        if image is None or entry.key[1].endswith(DOUBTFUL):
            # There is nothing to count, or a person says that it was counted.
            return self._write(entry)
        is_foreign, is_item = self._origins.is_foreign(entry.content), _is_item(entry, image)
        mark = self._mark(entry, image) if name == NEW and is_item and not is_foreign else None
        if mark is not None:
            return self._write(entry, mark=mark)
        partner = None if is_foreign else self._partner(entry, name, image)
        if partner is not None:
            return self._write(entry, partner)
        if is_foreign or not is_item:
            raise _refusal(entry, "an item of its own in this table, to be marked: redrive it, or purge it")
        raise _refusal(entry, "an image that its item still shows, or whose other side waits, too: redrive it")

    def _mark(self, entry: Quarantined, image: Image) -> dict[str, Any] | None:
        """The update that marks an item; None if it shows another image, or has the mark."""
        key = {name: image[name] for name in (PK, SK)}
        item = self._table.read_item(key)
        digest = image_digest(image)
        if not item or image_digest(item) != digest:
            return None
        # Those of images that it showed before mean nothing any more.
        there = {mark for mark in stored_marks(item) if mark.endswith(digest)}
        marks = there.union(marks_of(image, entry.names))
        if marks == there:
            return None
        if len(item) > _MOST_ATTRIBUTES + len(key):
            raise _refusal(entry, f"an item of at most {_MOST_ATTRIBUTES} attributes, to be marked: redrive it")
        return update_as_seen(self._table.name, key, {NOT_IN: {"SS": sorted(marks)}}, {NOT_IN: None, **item})

    def _partner(self, entry: Quarantined, name: str, image: Image) -> Quarantined | None:
        """An entry that waits with the same image, as the other side of a change."""
        if self._waiting is None:
            self._waiting = {}
            for other in list_quarantined(self._table, redriven=False):
                side, held = _image(other)
                if held is not None and not other.key[1].endswith(DOUBTFUL):
                    self._waiting.setdefault((side, other.names, image_digest(held)), []).append(other)
        others = self._waiting.get((OLD if name == NEW else NEW, entry.names, image_digest(image)), ())
        return next((other for other in others if other.key not in self._done), None)

    def _write(self, *entries: Quarantined, mark: dict[str, Any] | None = None) -> bool:
        updates = [state_request(self._table, stored_key(entry), WAITING, DISCARDED) for entry in entries]
        done = self._table.write_together([{"Update": update} for update in [*updates, *([mark] if mark else [])]])
        self._done.update(entry.key for entry in entries if done)
        return done


def _image(entry: Quarantined) -> tuple[str, Image | None]:
    change = entry.content.get("dynamodb")
    for name in (NEW, OLD):
        image = change.get(name) if isinstance(change, Mapping) else None
        if isinstance(image, Mapping):
            return name, image
    return NEW, None


def _is_item(entry: Quarantined, image: Image) -> bool:
    """Whether an image is of an item, not of an event in a chunk."""
    keys = entry.content["dynamodb"].get("Keys", {})
    return all(name in image and keys.get(name, image[name]) == image[name] for name in (PK, SK))


def _refusal(entry: Quarantined, allowed: str) -> InvalidArgumentError:
    return InvalidArgumentError("entry", entry.key[1], allowed)
