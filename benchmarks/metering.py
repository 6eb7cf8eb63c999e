"""What each kind of request consumes, by the size rule, on the items that a benchmark watches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from dynamodb_counters._items.table_schema import LEADERBOARD, SCORE
from dynamodb_counters.testing._dynamodb.capacity import index_write_units, item_bytes, write_units
from dynamodb_counters.testing._dynamodb.memory_client import MemoryTable, Paginator
from dynamodb_counters.testing._dynamodb.typed_values import Item

Label: TypeAlias = Callable[[str, str], str | None]
"""Names the group of watched items that a partition and sort key belong to, if any."""

_WATERMARK: Final = "_w"
_RANKED: Final = (LEADERBOARD, SCORE)


@dataclass
class Units:
    """Of one group of items: updates that were done, and write units by what they were for.

    `careless` is what the same updates cost on the same items without watermarks.
    """

    updates: int = 0
    updating: float = 0.0
    refused: float = 0.0
    pruning: float = 0.0
    index: float = 0.0
    careless: float = 0.0


@dataclass
class Meter:
    """A client that passes requests on to a table in memory and notes what they consume.

    `touched` counts the updates of all items, `housekeeping` has write units and `reads` read units by what they were
    for.
    """

    table: MemoryTable
    label: Label
    groups: dict[str, Units] = field(default_factory=dict)
    touched: int = 0
    housekeeping: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)

    def reset(self) -> None:
        """Forget all units: what has been steady begins here."""
        self.groups.clear()
        self.housekeeping.clear()
        self.reads.clear()
        self.touched = 0

    def get_item(self, **request: Any) -> Any:
        return self._read(_kind(request["Key"]), self.table.get_item, request)

    def batch_get_item(self, **request: Any) -> Any:
        return self._read("pruning", self.table.batch_get_item, request)

    def query(self, **request: Any) -> Any:
        return self._read(_kind({"pk": request["ExpressionAttributeValues"][":pk"]}), self.table.query, request)

    def get_paginator(self, operation: str) -> Paginator:
        assert operation == "query"
        return Paginator(self.query)

    def put_item(self, **request: Any) -> Any:
        return self._written(_kind(request["Item"]), self.table.put_item, request)

    def transact_write_items(self, **request: Any) -> Any:
        [first] = request["TransactItems"][0].values()
        return self._written(
            _kind({**first.get("Item", {}), **first.get("Key", {})}), self.table.transact_write_items, request
        )

    def update_item(self, **request: Any) -> Any:
        kind = _kind(request["Key"])
        if kind != "items":
            return self._written(kind, self.table.update_item, request)
        label = self.label(*(request["Key"][name]["S"] for name in ("pk", "sk")))
        old = self._find(request) if label else None
        before = self.table.usage.writes
        pruning = request["UpdateExpression"].startswith("REMOVE")
        try:
            answer = self.table.update_item(**request)
        except self.table.exceptions.ConditionalCheckFailedException:
            if label:
                self._of(label).refused += self.table.usage.writes - before
            raise
        self.touched += not pruning
        if label:
            self._note(self._of(label), old, self._find(request), self.table.usage.writes - before, pruning=pruning)
        return answer

    def _note(self, units: Units, old: Item | None, new: Item | None, consumed: float, *, pruning: bool) -> None:
        if pruning:
            units.pruning += consumed
            return
        units.updates += 1
        units.updating += consumed
        units.index += index_write_units(old, new, _RANKED)
        units.careless += write_units(bytes_without_watermarks(new or {}))

    def _of(self, label: str) -> Units:
        return self.groups.setdefault(label, Units())

    def _find(self, request: Mapping[str, Any]) -> Item | None:
        return self.table.tables[request["TableName"]].find("GetItem", request["Key"])

    def _read(self, kind: str, call: Callable[..., Any], request: dict[str, Any]) -> Any:
        before = self.table.usage.reads
        try:
            return call(**request)
        finally:
            self.reads[kind] += self.table.usage.reads - before  # type: ignore[assignment]  # typeshed wants counts

    def _written(self, kind: str, call: Callable[..., Any], request: dict[str, Any]) -> Any:
        before = self.table.usage.writes
        try:
            return call(**request)
        finally:
            self.housekeeping[kind] += self.table.usage.writes - before  # type: ignore[assignment]


def bytes_without_watermarks(item: Mapping[str, Any]) -> int:
    return item_bytes({name: value for name, value in item.items() if not name.startswith(_WATERMARK)})


def watermark_bytes(item: Mapping[str, Any]) -> list[int]:
    return [item_bytes({name: value}) for name, value in item.items() if name.startswith(_WATERMARK)]


def _kind(key: Item) -> str:
    """What an item is for: control items are told apart by their partition."""
    pk = key["pk"]["S"]
    if pk.startswith("CHECKPOINT#"):
        return "deployments" if pk == "CHECKPOINT#" else "checkpoints"
    return "quarantine" if pk.startswith("QUARANTINE#") else "items"
