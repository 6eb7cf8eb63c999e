"""Events that are items of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dynamodb_counters._erase.matching import Wanted
from dynamodb_counters._items.table_schema import ERASED, ONCE_SUFFIX, PK, SK, TTL, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import DAY
from dynamodb_counters.errors import CountersError

_LONG_OVER: Final = DAY
"""How far in the past an expired event's `ttl` is set: no clock is that wrong, so its deletion is an expiry to all."""


class EventItems:
    """The table's items of the wanted events."""

    def __init__(self, table: Table, wanted: Wanted) -> None:
        self._table, self._wanted = table, wanted

    def sweep(self, *, keeps_counts: bool, writes: bool) -> int:
        """Delete them, as expired ones if their counts are kept; return how many there were."""
        found = 0
        for page in self._pages():
            items = [item for item in page["Items"] if self._wanted.is_event(item)]
            found += len(items)
            if writes:
                self._table.each(self._expire if keeps_counts else self._delete, items)
        return found

    def _pages(self) -> Iterator[Mapping[str, Any]]:
        """One partition if the values determine it, else the whole table."""
        event, texts = self._wanted.event, self._wanted.texts
        request: dict[str, Any] = {"TableName": self._table.name, "ConsistentRead": True}
        if texts.keys() >= set(event._pk_template.fields):
            operation = "query"
            request["KeyConditionExpression"] = f"{PK} = :pk"
            request["ExpressionAttributeValues"] = {":pk": {"S": event._pk_template.render(texts)}}
        else:
            operation = "scan"
            request["FilterExpression"] = "#type = :event OR #type = :once"
            request["ExpressionAttributeNames"] = {"#type": TYPE}
            types = {":event": {"S": event.name}, ":once": {"S": event.name + ONCE_SUFFIX}}
            request["ExpressionAttributeValues"] = types
        yield from self._table.client.get_paginator(operation).paginate(**request)  # type: ignore[call-overload]

    def _delete(self, item: Mapping[str, Any]) -> None:
        self._table.client.delete_item(TableName=self._table.name, Key=_key(item))

    def _expire(self, item: Mapping[str, Any]) -> None:
        """Mark an event and let its time run out, then delete it: its counts stay, and move into the tally.

        A newer version that comes in between has its own time, which runs out likewise.
        """
        over = {"N": str(int(self._table.clock() - _LONG_OVER))}
        request: Any = {
            "Key": _key(item),
            "ExpressionAttributeNames": {"#ttl": TTL, "#erased": ERASED},
            "ExpressionAttributeValues": {":over": over, ":erased": {"BOOL": True}},
        }
        marks = {"UpdateExpression": "SET #ttl = :over, #erased = :erased"}
        for _ in self._table.tries():
            if not self._table.write("update_item", **request, **marks, ConditionExpression=f"attribute_exists({PK})"):
                return
            if self._table.write("delete_item", **request, ConditionExpression="#ttl = :over AND #erased = :erased"):
                return
        raise CountersError("an event that is to be erased changes all the time")


def _key(item: Mapping[str, Any]) -> dict[str, Any]:
    return {PK: item[PK], SK: item[SK]}
