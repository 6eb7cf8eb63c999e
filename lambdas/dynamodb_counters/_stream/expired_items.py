"""Which declarations count items that have expired: what they count cannot be computed from the items there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from dynamodb_counters._items.table_schema import CHECKPOINT, CHECKPOINT_PREFIX, PK, SK, TYPE
from dynamodb_counters._table import Table

_PREFIX: Final = "EXPIRED#"


class ExpiredItems:
    """The declarations of one table that count expired items, as one process has noted them."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._noted = set[str]()

    def note(self, names: Iterable[str]) -> None:
        """Note them before they are counted, so that no verification takes them for drift."""
        for name in sorted(names):
            if name not in self._noted:
                item = {PK: {"S": CHECKPOINT_PREFIX}, SK: {"S": _PREFIX + name}, TYPE: {"S": CHECKPOINT}}
                self._table.client.put_item(TableName=self._table.name, Item=item)
                self._noted.add(name)


def read_expired(table: Table) -> frozenset[str]:
    """The names that any process has noted."""
    query: dict[str, Any] = {
        "KeyConditionExpression": f"{PK} = :pk AND begins_with({SK}, :prefix)",
        "ExpressionAttributeValues": {":pk": {"S": CHECKPOINT_PREFIX}, ":prefix": {"S": _PREFIX}},
    }
    pages = table.client.get_paginator("query").paginate(TableName=table.name, ConsistentRead=True, **query)
    return frozenset(item[SK]["S"].removeprefix(_PREFIX) for page in pages for item in page["Items"])
