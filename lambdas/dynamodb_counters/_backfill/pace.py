"""How many units a second a run may consume."""

from __future__ import annotations

from dataclasses import dataclass

from dynamodb_counters._table import Table


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
