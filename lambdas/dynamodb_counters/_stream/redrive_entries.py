"""Redrive: list the quarantine, send an entry back through the stream, and unwrap it there.

A redrive changes the state of the quarantine item. The stream record of that change stands for what the item holds, so
it is folded and committed like any record: exactly once, however often it is requested or delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dynamodb_counters._fold.deltas import Unfoldable
from dynamodb_counters._fold.fold import reason_of
from dynamodb_counters._fold.records import NEW, OLD, Change, QuarantinedDelta, Record
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.decimals import parse_number
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._stream.origins import ONE_TABLE, Origins
from dynamodb_counters._stream.quarantine_items import (
    DELTA,
    DISCARDED,
    PARTITIONS,
    RECORD,
    REDRIVEN,
    STATE,
    UNREADABLE,
    WAITING,
    Quarantined,
    names_of,
    partition,
    read_quarantine_item,
    redriven_item,
    unpack,
)
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError


def list_quarantined(table: Table, *, redriven: bool) -> Iterator[Quarantined]:
    """Entries in no particular order; those redriven already only on request."""
    for item in stored_entries(table):
        if item.get(STATE, {}).get("S") in ((WAITING, REDRIVEN) if redriven else (WAITING,)):
            yield read_quarantine_item(item)


def stored_entries(table: Table) -> Iterator[Image]:
    """The items of the quarantine, whatever became of them."""
    for number in range(PARTITIONS):
        pages = table.client.get_paginator("query").paginate(
            TableName=table.name,
            KeyConditionExpression=f"{PK} = :pk",
            ExpressionAttributeValues={":pk": {"S": partition(number)}},
            ConsistentRead=True,
        )
        for page in pages:
            yield from page["Items"]


def discard(table: Table, entry: Quarantined) -> bool:
    """Let an entry never be counted; False if it waits no more. It stays: a record that comes again finds it."""
    return _change(table, entry, DISCARDED)


def redrive(table: Table, entry: Quarantined) -> bool:
    """Send an entry back through the stream; False if it was redriven before or has expired."""
    if not isinstance(entry, Quarantined):
        raise InvalidArgumentError("entry", entry, "a Quarantined, one of quarantined()")
    return _change(table, entry, REDRIVEN)


def purge(table: Table, entry: Quarantined) -> bool:
    """Delete an entry; False if it was redriven: what was counted of it must be found if its record comes again."""
    try:
        table.client.delete_item(
            TableName=table.name,
            Key={PK: {"S": entry.key[0]}, SK: {"S": entry.key[1]}},
            ConditionExpression="#state = :waiting OR #state = :discarded",
            ExpressionAttributeNames={"#state": STATE},
            ExpressionAttributeValues={":waiting": {"S": WAITING}, ":discarded": {"S": DISCARDED}},
        )
    except table.client.exceptions.ConditionalCheckFailedException:
        return False
    return True


def _change(table: Table, entry: Quarantined, state: str) -> bool:
    try:
        table.client.update_item(
            TableName=table.name,
            Key={PK: {"S": entry.key[0]}, SK: {"S": entry.key[1]}},
            UpdateExpression="SET #state = :changed",
            ConditionExpression="#state = :waiting",
            ExpressionAttributeNames={"#state": STATE},
            ExpressionAttributeValues={":changed": {"S": state}, ":waiting": {"S": WAITING}},
        )
    except table.client.exceptions.ConditionalCheckFailedException:
        return False
    return True


@dataclass(slots=True)
class Unwrapped:
    """The changes of a batch, with redriven entries replaced by what they hold, and the entries that are unreadable."""

    changes: list[Change] = field(default_factory=list)
    unreadable: list[Unfoldable] = field(default_factory=list)


def unwrap(records: Iterable[Record], origins: Origins = ONE_TABLE) -> Unwrapped:
    """Turn delivered records into changes."""
    unwrapped = Unwrapped()
    last = ""
    for record in records:
        arrival = record["dynamodb"]
        change = Change(record, is_foreign=origins.is_foreign(record))
        assert last < change.sequence, f"record {change.sequence} comes after {last}: a shard's records ascend"
        last = change.sequence
        item = redriven_item(arrival) if OLD in arrival and not change.is_foreign else None
        if item is None:
            unwrapped.changes.append(change)
            continue
        try:
            unwrapped.changes.append(_held_by(item, record, origins))
        except UNREADABLE as error:
            unwrapped.unreadable.append(Unfoldable(change.sequence, NEW, record, reason_of(error)))
    return unwrapped


def _held_by(item: Image, delivered: Record, origins: Origins) -> Change:
    """What a quarantine item holds; an entry that could not be counted when redriven holds a redriven entry itself."""
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
        return _held_by(again, delivered, origins)
    return Change(delivered, held, names=frozenset(names_of(item)) or None, is_foreign=is_foreign)
