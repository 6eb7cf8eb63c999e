"""How far shards are in the log of a run, and how idle ones get something to log."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._backfill.feeds import Feeds
from dynamodb_counters._backfill.pace import Pace
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
    feeds: Feeds
    now: Callable[[], float]
    pace: Pace

    def has_passed(self, ended_at: float, shard: str) -> bool:
        """Whether the last page of a shard's log is from after the scan, or the shard has nothing else."""
        source, end = self.feeds.source, ended_at + self.feeds.clocks
        if source is not None and source.has(shard) and self.now() > end:
            logged = [page["last"]["S"] for page in self._pages(shard, _LAST_PAGES)]
            return not source.has_more(shard, max(logged, default=""), self.run.since, end)
        return any(float(page["created"]["N"]) > end or page["beats"]["N"] != "0" for page in self._pages(shard, 1))

    def has_passed_in_own_table(self, moment: float, shard: str) -> bool:
        """Whether a shard has logged a record from then on, if it is of the table of the counts."""
        is_foreign = self.feeds.is_foreign(shard)
        return is_foreign or any(float(page["created"]["N"]) >= moment for page in self._pages(shard, 1))

    def beat(self, count: int) -> None:
        """Change items of random keys."""
        for _ in range(count):
            item = run_item(beat_key(self.run.id, secrets.token_hex(8)), {}, self.table.clock())
            self.table.client.put_item(TableName=self.table.name, Item=item)
            self.pace.spend(1.0)

    def _pages(self, shard: str, most: int) -> list[Any]:
        pk = log_key(self.run.id, shard)[PK]["S"]
        return list(self.table.last_of(pk, most, ("created", "beats", "last")))
