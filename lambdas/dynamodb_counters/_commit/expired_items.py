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
        known = {} if math.isinf(until) else {_UNTIL: round(until)}
        put: dict[str, Any] = {"Item": bookkeeping_item(bookkeeping_key(_PREFIX + name), known)}
        if known:
            put |= {
                "ConditionExpression": f"attribute_not_exists({PK}) OR #until < :until",
                "ExpressionAttributeNames": {"#until": _UNTIL},
                "ExpressionAttributeValues": {":until": put["Item"][_UNTIL]},
            }
        # If it is refused, another process has noted as much.
        self._table.write("put_item", **put)


def read_expired(table: Table) -> dict[str, float]:
    """Notes of any process."""
    found = table.partition(CHECKPOINT_PREFIX, _PREFIX)
    return {item[SK]["S"].removeprefix(_PREFIX): _until(item) for item in found}


def _until(item: Mapping[str, Any]) -> float:
    try:
        return float(item[_UNTIL]["N"])
    except (LookupError, TypeError, ValueError):
        return math.inf
