"""Events that are items of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from dynamodb_counters._erase.matching import Wanted
from dynamodb_counters._items.table_schema import ERASED, ONCE_SUFFIX, PK, SK, TTL
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import DAY
from dynamodb_counters.errors import CountersError

_AT_A_TIME: Final = 256

_LONG_OVER: Final = DAY
"""How far in the past an expired event's `ttl` is set: no clock is that wrong, so its deletion is an expiry to all."""


class EventItems:
    def __init__(self, table: Table, wanted: Wanted) -> None:
        self._table, self._wanted = table, wanted

    def sweep(self, *, keeps_counts: bool, writes: bool) -> int:
        """Delete them, as expired ones if their counts are kept; return how many there were."""
        found, events = 0, filter(self._wanted.is_event, self._items())
        while some := list(islice(events, _AT_A_TIME)):
            found += len(some)
            if writes:
                self._table.each(self._expire if keeps_counts else self._delete, some)
        return found

    def _items(self) -> Iterator[Mapping[str, Any]]:
        """One partition if the values determine it, else the whole table."""
        event, texts = self._wanted.event, self._wanted.texts
        if texts.keys() >= set(event._pk_template.fields):
            return self._table.partition(event._pk_template.render(texts))
        return self._table.of_types(event.name, event.name + ONCE_SUFFIX)

    def _delete(self, item: Mapping[str, Any]) -> None:
        self._table.client.delete_item(TableName=self._table.name, Key={PK: item[PK], SK: item[SK]})

    def _expire(self, item: Mapping[str, Any]) -> None:
        """Mark an event and let its time run out, then delete it: its counts stay, and move into the tally."""
        over = {"N": str(int(self._table.clock() - _LONG_OVER))}
        request: Any = {
            "Key": {PK: item[PK], SK: item[SK]},
            "ExpressionAttributeNames": {"#ttl": TTL, "#erased": ERASED},
            "ExpressionAttributeValues": {":over": over, ":erased": {"BOOL": True}},
        }
        marks = {"UpdateExpression": "SET #ttl = :over, #erased = :erased"}
        for _ in self._table.tries():
            if not self._table.write("update_item", **request, **marks, ConditionExpression=f"attribute_exists({PK})"):
                return
            # A newer version may come in between, whose own time runs out likewise.
            if self._table.write("delete_item", **request, ConditionExpression="#ttl = :over AND #erased = :erased"):
                return
        raise CountersError("an event that is to be erased changes all the time")
