"""How far shards are in the log of a run, and how idle ones get something to log."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._assumptions import CLOCKS
from dynamodb_counters._backfill.pace import Pace
from dynamodb_counters._backfill.source_table import SourceTable
from dynamodb_counters._control.run_items import Run, beat_key, log_key, run_item
from dynamodb_counters._items.table_schema import PK
from dynamodb_counters._table import Table

_LAST_PAGES: Final = 25
"""A batch that is delivered again in parts may have written the last ones."""


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last pages that shards have put into the log of a run."""

    run: Run
    table: Table
    source: SourceTable | None
    now: Callable[[], float]
    pace: Pace
    clocks: float = CLOCKS

    def has_passed(self, ended_at: float, shard: str) -> bool:
        """Whether the last page of a shard's log is from after the scan, or the shard has nothing else."""
        if self.source is not None and self.source.has(shard) and self.now() > ended_at + self.clocks:
            logged = [page["last"]["S"] for page in self._pages(shard, _LAST_PAGES)]
            return not self.source.has_more(shard, max(logged, default=""), self.run.since, ended_at + self.clocks)
        return any(
            float(page["created"]["N"]) > ended_at + self.clocks or page["beats"]["N"] != "0"
            for page in self._pages(shard, 1)
        )

    def has_passed_in_own_table(self, moment: float, shard: str) -> bool:
        """Whether a shard has logged a record from then on, if it is of the table of the counts."""
        if self.source is not None and self.source.has(shard):
            return True
        return any(float(page["created"]["N"]) >= moment for page in self._pages(shard, 1))

    def beat(self, count: int) -> None:
        """Change items of random keys."""
        for _ in range(count):
            item = run_item(beat_key(self.run.id, secrets.token_hex(8)), {}, self.table.clock())
            self.table.client.put_item(TableName=self.table.name, Item=item)
            self.pace.spend(1.0)

    def _pages(self, shard: str, most: int) -> list[Any]:
        pk = log_key(self.run.id, shard)[PK]["S"]
        return list(self.table.last_of(pk, most, ("created", "beats", "last")))
