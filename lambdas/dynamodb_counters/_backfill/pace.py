"""How many units a second a run may consume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dynamodb_counters._table import Table


def units_of(answer: Mapping[str, Any]) -> float:
    return float(answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0))


def paid_write(
    table: Table, operation: Literal["put_item", "update_item", "delete_item"], **request: Any
) -> tuple[bool, float]:
    """Write an item on a condition: whether that held, and the units, 1 for a refusal."""
    try:
        answer = getattr(table.client, operation)(
            **{"TableName": table.name, "ReturnConsumedCapacity": "TOTAL", **request}
        )
    except table.client.exceptions.ConditionalCheckFailedException:
        return False, 1.0
    return True, units_of(answer)


@dataclass(slots=True)
class Pace:
    """Holds a run back so that it consumes no more than some units a second, on average."""

    table: Table
    units_per_second: float | None = None
    consumed: float = 0.0
    _free_at: float = 0.0

    def spend(self, units: float) -> None:
        """Note consumed units, and wait until that many may have been consumed."""
        self.consumed += units
        if self.units_per_second is None:
            return
        now = self.table.clock()
        self._free_at = max(self._free_at, now) + units / self.units_per_second
        if self._free_at > now:
            self.table.sleep(self._free_at - now)
