"""Consumption of each kind of request, by the size rule, on the items that a benchmark watches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from benchmarks.databases import MeteredClient, since
from dynamodb_counters._items.item_sizes import item_bytes, write_units
from dynamodb_counters._items.table_schema import LEADERBOARD, SCORE
from dynamodb_counters.testing._dynamodb.typed_values import Item
from simulation.metered_table import MeteredTable, index_write_units

Label: TypeAlias = Callable[[str, str], str | None]
"""Names the group of watched items that a partition and sort key belong to, if any."""

_WATERMARK: Final = "_w"
_RANKED: Final = (LEADERBOARD, SCORE)


@dataclass
class Units:
    """Updates of one group of items, and write units by what they were for.

    `careless` is what the same updates cost on the same items without watermarks.
    """

    updates: int = 0
    updating: float = 0.0
    refused: float = 0.0
    pruning: float = 0.0
    index: float = 0.0
    careless: float = 0.0


class Meter(MeteredClient):
    """A client that passes requests on to a table in memory and notes what they consume.

    `touched` counts the updates of all items; `housekeeping` has write units and `reads` read units by their purpose.
    """

    def __init__(self, table: MeteredTable, label: Label) -> None:
        super().__init__(table, self._sent)
        self._label = label
        self.reset()

    def reset(self) -> None:
        """Forget all units: what has been steady begins here."""
        self.groups: dict[str, Units] = {}
        self.touched = 0
        self.housekeeping, self.reads = Counter[str](), Counter[str]()

    def _sent(self, name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        kind, usage = purpose(name, request), self._table.usage
        counts = name == "update_item" and kind == "items"
        label = self._label(*(request["Key"][key]["S"] for key in ("pk", "sk"))) if counts else None
        old, before = self._find(request) if label else None, copy(usage)
        done = False
        try:
            answer = send()
            done = True
        finally:
            used = since(before, usage)
            if used.reads:
                self.reads[kind] += used.reads  # type: ignore[assignment]  # typeshed wants counts
            if not counts and used.writes:
                self.housekeeping[kind] += used.writes  # type: ignore[assignment]
            elif label and not done:
                self._of(label).refused += used.writes
        pruning = request.get("UpdateExpression", "").startswith("REMOVE")
        self.touched += counts and not pruning
        if label and pruning:
            self._of(label).pruning += used.writes
        elif label:
            units, new = self._of(label), self._find(request)
            units.updates += 1
            units.updating += used.writes
            units.index += index_write_units(old, new, _RANKED)
            units.careless += write_units(bytes_without_watermarks(new or {}))
        return answer

    def _of(self, label: str) -> Units:
        return self.groups.setdefault(label, Units())

    def _find(self, request: Mapping[str, Any]) -> Item | None:
        found: Item | None = self._table.tables[request["TableName"]].find("GetItem", request["Key"])
        return found


def bytes_without_watermarks(item: Mapping[str, Any]) -> int:
    return item_bytes({name: value for name, value in item.items() if not name.startswith(_WATERMARK)})


def watermark_bytes(item: Mapping[str, Any]) -> list[int]:
    return [item_bytes({name: value}) for name, value in item.items() if name.startswith(_WATERMARK)]


def purpose(name: str, request: Mapping[str, Any]) -> str:
    """Purpose of a request: control items are known by their partition."""
    if name == "batch_get_item":
        return "pruning"
    if name == "query":
        key = {"pk": request["ExpressionAttributeValues"][":pk"]}
    elif name == "transact_write_items":
        [first] = request["TransactItems"][0].values()
        key = first.get("Key") or first["Item"]
    else:
        key = request.get("Key") or request.get("Item") or {"pk": {"S": ""}}
    pk = key["pk"]["S"]
    if pk.startswith("CHECKPOINT#"):
        return "deployments" if pk == "CHECKPOINT#" else "checkpoints"
    return "quarantine" if pk.startswith("QUARANTINE#") else "items"
