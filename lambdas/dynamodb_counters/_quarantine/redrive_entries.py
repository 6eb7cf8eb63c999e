"""Redrive and discard: send an entry back through the stream, or give it up.

A redrive changes the state of the quarantine item. The stream record of that change stands for what the item holds, so
it is folded and committed like any record: exactly once, however often it is requested or delivered.

A discarded entry is never counted. Nothing else knows of it: its item cannot be folded either, when it is scanned or
deleted, so an entry that can be, now or later, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change, Origins, QuarantinedDelta, Record, inserted
from dynamodb_counters._items.bookkeeping import update_as_seen
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import parse_number
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._quarantine.quarantine import (
    CHANGED_AT,
    DELTA,
    DISCARDED,
    NAMES,
    PARTITIONS,
    PROVISIONAL,
    RECORD,
    REDRIVEN,
    SETTLED,
    STATE,
    UNREADABLE,
    WAITING,
    Quarantined,
    awaited_by,
    names_of,
    origin_of,
    read_quarantine_item,
    redriven_item,
    unpack,
)
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError

_AT_A_TIME: Final = 256


def list_quarantined(table: Table, *, redriven: bool) -> Iterator[Quarantined]:
    """Entries in no particular order; those redriven already only on request."""
    for item in stored_entries(table):
        if item.get(STATE, {}).get("S") in ((WAITING, REDRIVEN) if redriven else (WAITING,)):
            yield read_quarantine_item(item)


def stored_entries(table: Table) -> Iterator[Image]:
    """The items of the quarantine, whatever became of them."""
    for pk in PARTITIONS:
        yield from table.partition(pk)


def redrive(table: Table, entry: Quarantined) -> bool:
    """Send an entry back through the stream; False if it was redriven before or has expired."""
    if not isinstance(entry, Quarantined):
        raise InvalidArgumentError("entry", entry, "a Quarantined, one of quarantined()")
    return table.write("update_item", **state_request(table, stored_key(entry), WAITING, REDRIVEN))


def discard(table: Table, entry: Quarantined, plan: Plan, origins: Origins) -> bool:
    """Give an entry up for good; False if it has changed meanwhile."""
    key = stored_key(entry)
    if _can_count(plan, origins, table.read_item(key), table.clock()):
        raise InvalidArgumentError("entry", entry.key[1], "one that cannot be counted: redrive it")
    return table.write("update_item", **state_request(table, key, WAITING, DISCARDED))


def _can_count(plan: Plan, origins: Origins, item: Image, now: float) -> bool:
    """Whether an entry would count once it is redriven, or its item once its time has come."""
    try:
        folded = fold(plan, [held_by(item, inserted({}, now), origins)])
    except UNREADABLE:
        return False
    return bool(folded.deltas or folded.early)


def held_by(item: Image, delivered: Record, origins: Origins) -> Change:
    """The change that an entry holds; one that could not be counted when redriven holds a redriven entry itself."""
    if DELTA in item:
        content = unpack(item[DELTA])
        numbers = tuple((name, parse_number(text)) for name, text in content["numbers"].items())
        delta = QuarantinedDelta(content["name"], tuple(content["group"]), numbers)
        return Change(delivered, delta=delta, origin=origin_of(item, content.get("created")))
    held = unpack(item[RECORD])
    if not isinstance(held["dynamodb"], dict):
        raise TypeError("expected a stream record")
    is_foreign = origins.is_foreign(held)
    again = None if is_foreign else redriven_item(held["dynamodb"])
    if again is not None:
        return held_by(again, delivered, origins)
    names = frozenset(names_of(item)) or None
    origin = origin_of(item, held["dynamodb"].get("ApproximateCreationDateTime"))
    return Change(delivered, held, names=names, is_foreign=is_foreign, origin=origin)


def confirm(table: Table, key: Mapping[str, Any], other: Mapping[str, Any] | None = None) -> bool:
    """Let a provisional entry wait, unless the other one that stands for the same does, or did."""
    update = state_request(table, key, PROVISIONAL, WAITING)
    if other is None:
        return table.write("update_item", **update)
    check = {
        "TableName": table.name,
        "Key": other,
        "ConditionExpression": "attribute_not_exists(#state) OR #state = :provisional",
        "ExpressionAttributeNames": {"#state": STATE},
        "ExpressionAttributeValues": {":provisional": {"S": PROVISIONAL}},
    }
    return table.write_together([{"Update": update}, {"ConditionCheck": check}])


def stored_key(entry: Quarantined) -> dict[str, Any]:
    return {PK: {"S": entry.key[0]}, SK: {"S": entry.key[1]}}


def state_request(table: Table, key: Mapping[str, Any], before: str, after: str) -> dict[str, Any]:
    new = {STATE: {"S": after}, CHANGED_AT: {"N": f"{table.clock():.0f}"}}
    return update_as_seen(table.name, key, new, {STATE: {"S": before}})


Moot: TypeAlias = Callable[[Image, str], bool]
"""Whether an entry waits for a name in vain."""


def settle(table: Table, moot: Moot) -> int:
    """Let entries no longer wait for what backfills have counted; return how many wait for nothing else."""
    settled = 0
    entries = (item for item in stored_entries(table) if _moot_names(item, moot))
    while some := list(islice(entries, _AT_A_TIME)):
        settled += sum(table.each(lambda item: _settle(table, item, moot), some))
    return settled


def _moot_names(item: Image, moot: Moot) -> list[str]:
    is_waiting = item.get(STATE, {}).get("S") == WAITING
    return [name for name in awaited_by(item) if moot(item, name)] if is_waiting else []


def _settle(table: Table, item: Image, moot: Moot) -> bool:
    key = {PK: item[PK], SK: item[SK]}
    while names := _moot_names(item, moot):
        left = [name for name in awaited_by(item) if name not in names]
        new = {NAMES: {"SS": left}} if left else {STATE: {"S": SETTLED}}
        seen = {STATE: {"S": WAITING}, NAMES: item.get(NAMES)}
        if table.write("update_item", **update_as_seen(table.name, key, new, seen)):
            return not left
        # It was redriven, or settled in part by another backfill.
        item = table.read_item(key)
    return False
