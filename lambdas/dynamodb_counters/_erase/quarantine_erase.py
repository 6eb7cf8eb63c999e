"""Entries of the quarantine that hold events.

An entry without its content stays until it would have gone anyway: it distinguishes a record that is delivered again
from a new one, so that what was decided of it stands. One that waits keeps its content: dropped, it would be taken back
all the same. So it is discarded first; what a discard does not make right is redriven, and its content goes at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dynamodb_counters._control.control import read_control
from dynamodb_counters._erase.discards import Discards
from dynamodb_counters._erase.matching import Wanted, reduced
from dynamodb_counters._fold.records import Record
from dynamodb_counters._items.bookkeeping import update_as_seen
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._quarantine.quarantine_items import (
    PROVISIONAL,
    REASON,
    RECORD,
    STATE,
    UNREADABLE,
    WAITING,
    pack,
    read_quarantine_item,
    unpack,
)
from dynamodb_counters._quarantine.redrive_entries import redrive, stored_entries
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError


class QuarantineCopies:
    def __init__(self, table: Table, wanted: Wanted) -> None:
        self._table, self._wanted = table, wanted

    def drop(self) -> int:
        """Have entries wait no more that hold nothing but events; return how many of these were dropped."""
        discards, dropped = Discards(self._table), 0
        for item, found, left in self._found():
            if _state(item) == WAITING and left is None:
                entry = read_quarantine_item(item)
                try:
                    done = discards.discard(entry)
                except InvalidArgumentError:
                    done = redrive(self._table, entry)
                dropped += found * done
        return dropped

    def sweep(self, *, writes: bool, drops: bool = False) -> tuple[int, int, int]:
        """Take out the events; return how many there were, how many of them wait to be counted, how many stay."""
        events = waiting = staying = 0
        for item, found, left in self._found():
            # Dropped entries wait on only for events of others.
            is_left = self._waits(item) and not (drops and left is not None)
            events += found
            waiting += found * (_state(item) == WAITING)
            staying += found * is_left
            if writes and not is_left:
                self._update(item, left)
        return events, waiting, staying

    def _found(self) -> Iterator[tuple[Mapping[str, Any], int, Record | None]]:
        for item in stored_entries(self._table):
            found, left = self._reduced(item) if RECORD in item else (0, None)
            if found:
                yield item, found, left

    def _waits(self, item: Mapping[str, Any]) -> bool:
        """Whether something is to become of an entry: one that a backfill has met waits, perhaps, when that ends."""
        state = _state(item)
        return state == WAITING or (state == PROVISIONAL and bool(read_control(self._table).runs))

    def _reduced(self, item: Mapping[str, Any]) -> tuple[int, Record | None]:
        try:
            return reduced(unpack(item[RECORD]), self._wanted)
        except UNREADABLE:
            # A spoiled entry can never be counted.
            return int(self._wanted.is_quoted_in(str(item[RECORD].get("S", "")))), None

    def _update(self, item: Mapping[str, Any], left: Record | None) -> None:
        new: dict[str, Any] = {RECORD: None, REASON: None, STATE: None}
        if left is not None:
            is_quoted = self._wanted.is_quoted_in(item.get(REASON, {}).get("S", ""))
            new = {RECORD: pack(left), **({REASON: None} if is_quoted else {})}
        key, seen = {PK: item[PK], SK: item[SK]}, {RECORD: item[RECORD]}
        # If it is not as it was seen, it has expired, or another run has been here.
        self._table.write("update_item", **update_as_seen(self._table.name, key, new, seen))


def _state(item: Mapping[str, Any]) -> str:
    return str(item.get(STATE, {}).get("S", ""))
