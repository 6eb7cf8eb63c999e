"""Restores: a copy of a table as of any moment, over which an aggregator is deployed, and which is then repaired."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dynamodb_counters._backfill.backfill import Backfill
from dynamodb_counters._backfill.runner import Runner as Work
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError
from simulation.faults.process import in_disorder
from simulation.pairs.backend import MemoryBackend
from simulation.pairs.calls import Runner
from simulation.pairs.sandbox import QUARANTINE_SECONDS

_BEGINS_AFTER: Final = timedelta(minutes=20)
"""By how much the stream of a restored table is younger than the table."""

_SETTLED: Final = 1800.0
_MOST_BACKFILLS: Final = 2
"""One that meets what a transaction had counted ends, and the next one empties the name first."""


class RestoredTable(MemoryBackend):
    """A table with the items that another one has now."""

    def __init__(self, original: MemoryBackend, seed: int) -> None:
        super().__init__(random.Random(seed + 10**6), original.clock, name="restored")
        self._copied_at = datetime.fromtimestamp(original.clock(), UTC)
        partitions = self.tables[self.name].partitions
        for item in deepcopy(list(original.items())):
            partitions.setdefault(item["pk"]["S"], {})[item["sk"]["S"]] = item

    def begin(self) -> None:
        """Enable the stream, now."""
        self._began = datetime.fromtimestamp(self.clock(), UTC)

    def describe_table(self, **request: Any) -> dict[str, Any]:
        found = super().describe_table(**request)
        label = self._began.isoformat(timespec="milliseconds").removesuffix("+00:00")
        found["Table"] |= {"CreationDateTime": self._began - _BEGINS_AFTER, "LatestStreamLabel": label}
        found["Table"] |= {"RestoreSummary": {"RestoreDateTime": self._copied_at}}
        return found


class Restored:
    """A restored table with its aggregator, which lags, while events come."""

    def __init__(
        self,
        table: RestoredTable,
        rng: random.Random,
        declared: tuple[Declaration, ...],
        write: Callable[[], object] = lambda: None,
    ) -> None:
        self.backend, self._random, self._write = table, rng, write
        table.begin()
        self.table = Table(
            table.name, table.client, table.clock, sleep=table.clock.advance, jitter=rng.random, threads=1
        )
        self.table.__dict__["side_by_side"] = in_disorder(rng)
        self._delivered: dict[str, int] = {}
        self._aggregator = Aggregator(self.table, declared, quarantine_retention_seconds=QUARANTINE_SECONDS)
        self._aggregator.handle({})

    def write(self) -> None:
        self._write()

    def deliver(self, most: int = 10**6) -> bool:
        """Deliver up to so many records of each shard; return whether there were any."""
        found = False
        for shard in self._random.sample(shards := self.backend.stream.shards(), len(shards)):
            start = self._delivered.get(shard.id, 0)
            batch = self.backend.stream.read(shard.id, None, 10**6).records[start : start + most]
            if batch:
                found = True
                self._aggregator.handle({"shardId": shard.id, "Records": batch})
                self._delivered[shard.id] = start + len(batch)
        return found

    def deliver_all(self) -> None:
        while self.deliver():
            pass

    def run(self, kind: Callable[..., Work], run: str = "") -> Runner:
        """Have a process work on a run until it ends."""
        runner = Runner(self.backend, self._random, kind=kind, run=run)
        draw = self._random.random
        while not runner.step(None):
            if draw() < 0.05:
                self.write()
            if draw() < 0.2:
                self.deliver(self._random.randint(1, 20))
            if runner.is_asleep:
                self.backend.clock.advance(self._random.uniform(0.5, 3))
        if not isinstance(runner.error, BackfillError | None):
            raise runner.error
        return runner

    def repair(self) -> Verification:
        """Run `counters verify --repair`; before that `counters backfill`, if not everything is complete."""
        for _ in range(_MOST_BACKFILLS):
            registry = read_registry(self.table)
            if all(entry.is_complete for entry in registry.names.values()):
                break
            self.backend.clock.advance(_SETTLED)
            for run in [*(run.id for run in registry.backfills), ""]:
                self.run(Backfill, run)
        runner = self.run(Verification)
        assert runner.error is None, runner.error
        work: Verification = runner.work
        work.repair()
        self.deliver_all()
        return work
