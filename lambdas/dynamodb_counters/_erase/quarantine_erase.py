"""Entries of the quarantine that hold events.

An entry without its content stays until it would have gone anyway: it tells a record that is delivered again from a new
one, so that what was decided of it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynamodb_counters._erase.held_records import Reduced, reduced
from dynamodb_counters._erase.matching import Wanted
from dynamodb_counters._fold.records import Record
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._stream.quarantine_items import REASON, RECORD, STATE, UNREADABLE, WAITING, pack, unpack
from dynamodb_counters._stream.redrive_entries import stored_entries
from dynamodb_counters._table import Table


@dataclass(slots=True)
class InQuarantine:
    """How many of the events its entries hold, and how many of those wait to be counted."""

    found: int = 0
    waiting: int = 0


class QuarantineCopies:
    """The quarantine of one table."""

    def __init__(self, table: Table, wanted: Wanted) -> None:
        self._table = table
        self._wanted = wanted

    def sweep(self, *, writes: bool) -> InQuarantine:
        found = InQuarantine()
        for item in stored_entries(self._table):
            part = self._reduced(item) if RECORD in item else None
            if part is None or not part.found:
                continue
            found.found += part.found
            found.waiting += part.found * (item.get(STATE, {}).get("S") == WAITING)
            if writes:
                self._update(item, part.left)
        return found

    def _reduced(self, item: Mapping[str, Any]) -> Reduced:
        try:
            return reduced(unpack(item[RECORD]), self._wanted)
        except UNREADABLE:
            # Somebody has spoiled it, so that it can never be counted.
            is_named = self._wanted.is_quoted_in(str(item[RECORD].get("S", "")))
            return Reduced(int(is_named), None)

    def _update(self, item: Mapping[str, Any], left: Record | None) -> None:
        change, names = "REMOVE #record, #reason, #state", {"#record": RECORD, "#reason": REASON, "#state": STATE}
        values: dict[str, Any] = {":seen": item[RECORD]}
        if left is not None:
            change = "SET #record = :left"
            values[":left"] = pack(left)
            del names["#state"], names["#reason"]
            if self._wanted.is_quoted_in(item.get(REASON, {}).get("S", "")):
                change, names = f"{change} REMOVE #reason", {**names, "#reason": REASON}
        try:
            self._table.client.update_item(
                TableName=self._table.name,
                Key={PK: item[PK], SK: item[SK]},
                UpdateExpression=change,
                ConditionExpression="#record = :seen",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
            )
        except self._table.client.exceptions.ConditionalCheckFailedException:
            return  # It has expired, or another run has been here.
