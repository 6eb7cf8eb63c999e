"""Which declarations count what has expired, and until when: it cannot be computed from the items there are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from dynamodb_counters._items.bookkeeping import bookkeeping_item, bookkeeping_key
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX, PK, SK
from dynamodb_counters._table import Table

_PREFIX: Final = "EXPIRED#"
_UNTIL: Final = "until"
"""Groups that begin then or later count nothing that has expired; without it, any group may."""


class ExpiredItems:
    """Notes of one process on the declarations of one table that count expired items."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._noted: dict[str, float] = {}

    def note(self, expired: Mapping[str, float]) -> None:
        """Note it before the batch is logged and counted, so that no verification takes it for drift."""
        for name, until in sorted(expired.items()):
            if until > self._noted.get(name, -math.inf):
                self._write(name, until)
                self._noted[name] = until

    def _write(self, name: str, until: float) -> None:
        client = self._table.client
        known = {} if math.isinf(until) else {_UNTIL: round(until)}
        item = bookkeeping_item(bookkeeping_key(_PREFIX + name), known)
        put: Any = {"TableName": self._table.name, "Item": item}
        if known:
            put |= {
                "ConditionExpression": f"attribute_not_exists({PK}) OR #until < :until",
                "ExpressionAttributeNames": {"#until": _UNTIL},
                "ExpressionAttributeValues": {":until": item[_UNTIL]},
            }
        try:
            client.put_item(**put)
        except client.exceptions.ConditionalCheckFailedException:
            # Another process has noted as much.
            return


def read_expired(table: Table) -> dict[str, float]:
    """Notes of any process."""
    query: dict[str, Any] = {
        "KeyConditionExpression": f"{PK} = :pk AND begins_with({SK}, :prefix)",
        "ExpressionAttributeValues": {":pk": {"S": CHECKPOINT_PREFIX}, ":prefix": {"S": _PREFIX}},
    }
    pages = table.client.get_paginator("query").paginate(TableName=table.name, ConsistentRead=True, **query)
    return {item[SK]["S"].removeprefix(_PREFIX): _until(item) for page in pages for item in page["Items"]}


def _until(item: Mapping[str, Any]) -> float:
    try:
        return float(item[_UNTIL]["N"])
    except (LookupError, TypeError, ValueError):
        return math.inf
