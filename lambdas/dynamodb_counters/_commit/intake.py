"""Intake: each delivered record is read once, into a change; an entry that was redriven into what it holds. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dynamodb_counters._fold.fold import reason_of
from dynamodb_counters._fold.origins import ONE_TABLE, Origins
from dynamodb_counters._fold.records import OLD, Change, QuarantinedDelta, Record
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.decimals import parse_number
from dynamodb_counters._items.table_schema import QUARANTINE, TYPE
from dynamodb_counters._quarantine.quarantine_items import DELTA, RECORD, UNREADABLE, names_of, redriven_item, unpack

_OF_QUARANTINE: Final = {"S": QUARANTINE}


def intake(records: Iterable[Record], origins: Origins = ONE_TABLE) -> list[Change]:
    """The changes that a shard's records, in order, ask to count; of an entry that cannot be read, why."""
    changes: list[Change] = []
    last = ""
    for record in records:
        change = Change(record, is_foreign=origins.is_foreign(record) if origins.are_two else None)
        assert last < change.sequence, f"record {change.sequence} comes after {last}: a shard's records ascend"
        last = change.sequence
        old = record["dynamodb"].get(OLD)
        if isinstance(old, dict) and old.get(TYPE) == _OF_QUARANTINE and not change.is_foreign:
            change = _redriven(record, change, origins)
        changes.append(change)
    return changes


def held_by(item: Image, delivered: Record, origins: Origins) -> Change:
    """The change that an entry holds; one that could not be counted when redriven holds a redriven entry itself."""
    if DELTA in item:
        content = unpack(item[DELTA])
        numbers = tuple((name, parse_number(text)) for name, text in content["numbers"].items())
        return Change(delivered, delta=QuarantinedDelta(content["name"], tuple(content["group"]), numbers))
    held = unpack(item[RECORD])
    if not isinstance(held["dynamodb"], dict):
        raise TypeError("expected a stream record")
    is_foreign = origins.is_foreign(held)
    again = None if is_foreign else redriven_item(held["dynamodb"])
    if again is not None:
        return held_by(again, delivered, origins)
    return Change(delivered, held, names=frozenset(names_of(item)) or None, is_foreign=is_foreign)


def _redriven(record: Record, change: Change, origins: Origins) -> Change:
    item = redriven_item(record["dynamodb"])
    try:
        return change if item is None else held_by(item, record, origins)
    except UNREADABLE as error:
        return Change(record, is_foreign=change.is_foreign, failure=reason_of(error))
