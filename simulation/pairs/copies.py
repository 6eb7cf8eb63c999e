"""Restores: a copy of the table as of any moment, which is deployed, written to, and repaired in the end."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dynamodb_counters._backfill.backfill import Backfill
from dynamodb_counters._backfill.runner import Runner as Work
from dynamodb_counters._backfill.verification import Difference, Verification
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._declarations import Aggregate, Declaration, Direct, Window
from dynamodb_counters._quarantine.quarantine import list_quarantined, redrive
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept
from dynamodb_counters.errors import BackfillError
from simulation.faults.process import in_disorder
from simulation.memory.memory_stream import Record
from simulation.oracle.aggregates import Group, Groups
from simulation.pairs import features
from simulation.pairs.audit import audit
from simulation.pairs.backend import Backend, MemoryBackend
from simulation.pairs.calls import Runner
from simulation.pairs.declared import VISIT
from simulation.pairs.engine import Act, Engine
from simulation.pairs.function import QUARANTINE_SECONDS
from simulation.pairs.ledger import HeardClient, Ledger, Purpose
from simulation.pairs.truth import Truth
from simulation.pairs.writers import PAGES, Writers

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


@dataclass
class _Copied:
    """The copy, and the original as of then."""

    table: RestoredTable
    records: list[tuple[str, Record]]
    ledger: Ledger
    declared: tuple[Declaration, ...]


class _CopiedTable:
    """A copy as an audit looks at it, with the original's records."""

    def __init__(self, copied: _Copied) -> None:
        self._copied = copied
        self.name, self.client, self.clock = copied.table.name, copied.table.client, copied.table.clock
        self.items = copied.table.items

    def history(self) -> Iterable[tuple[str, Record]]:
        return [*self._copied.records, *self._copied.table.history()]


class _CopyTruth(Truth):
    """The truth of a copy, as far as its items show it."""

    def must_wait(self, declaration: Declaration) -> Any:
        # Images that the original had not met are in no quarantine.
        return self.orders_waiting(declaration.name)

    def gone(self, declaration: Declaration) -> set[Group]:
        """Groups that may count what is gone: whether the copy had counted it, nothing shows."""
        if isinstance(declaration.source, Aggregate | Direct):
            return set()
        groups: Groups = {}
        items, self._items = self._items, []
        entries, self._entries = self._entries, []
        self._add_events(groups, declaration)
        self._items, self._entries = items, entries
        return set(groups)


def wrong_after(
    differences: Iterable[Difference], backend: Backend, declared: Iterable[Declaration], ledger: Ledger | None = None
) -> list[str]:
    """Counts that are neither exact nor unknown where a repair had to count what no aggregator has met."""
    truth = _CopyTruth(backend, ledger or Ledger())
    unknown = {name: truth.gone(declaration) for name, declaration in truth.registered.items()}
    wrong: list[str] = []
    for each in differences:
        declaration = truth.registered[each.ref[0]]
        if each.verdict == "unknown" and declaration.on_expiry == "subtract":
            wrong.append(f"{each.ref} is unknown, which nothing explains")
        if each.verdict != "drifted":
            unknown[declaration.name].add(truth.group_of(declaration, dict(each.group)))

    def is_unknown(declaration: Declaration, group: Group) -> bool:
        # Aggregates over others are as exact as these.
        source = declaration.source
        is_over = isinstance(source, Aggregate) and bool(unknown[source.name] or is_unknown(source, ()))
        # A window's groups are hours here, and a verification's are all its buckets.
        timeless = group[:-1] if isinstance(declaration, Window) else group
        return is_over or not unknown[declaration.name].isdisjoint((group, timeless))

    return wrong + audit(backend, declared, whole=False, truth=truth, is_unknown=is_unknown, fails_for=None)


class Restoring:
    """Copies the table once, at some time, and restores the copy in the end."""

    def __init__(self, engine: Engine, writers: Writers) -> None:
        self._engine, self._writers = engine, writers
        self._copied: _Copied | None = None
        self._left = (
            "copy" not in engine.without and isinstance(engine.backend, MemoryBackend) and engine.rng.random() < 0.5
        )
        self._numbers = 100

    def acts(self) -> Iterable[Act]:
        if self._left:
            yield 2, self._copy

    def _copy(self) -> None:
        engine, self._left = self._engine, False
        table = RestoredTable(engine.backend, engine.seed)  # type: ignore[arg-type]
        records, declared = list(engine.backend.history()), tuple(engine.deployments.declared)
        self._copied = copied = _Copied(table, records, deepcopy(engine.ledger), declared)
        table.client = HeardClient(table, table.name, copied.ledger, Purpose)

    def wrong(self) -> list[str]:
        """Deploy an aggregator on the copy, write, repair, and compare."""
        engine, copied = self._engine, self._copied
        if copied is None:
            return []
        # A repair finds what was spoiled.
        copied.ledger.spoiled.clear()
        restored = self._deployed(copied)
        if not any(entry.is_complete for entry in read_registry(restored.table).names.values()):
            return []
        work = restored.repair()
        engine.note(features.RESTORED)
        backend: Any = _CopiedTable(copied)
        return [f"restored: {text}" for text in wrong_after(work.differences, backend, copied.declared, copied.ledger)]

    def _deployed(self, copied: _Copied) -> Restored:
        """Deploy an aggregator on the copy; go on with runs, backfill and redrive, or not."""
        engine, draw = self._engine, self._engine.rng.random
        restored = Restored(copied.table, engine.rng, copied.declared, lambda: self._write(restored.table))
        restored.write()
        restored.deliver(3)
        engine.clock.advance(_SETTLED)
        for run in read_registry(restored.table).backfills if draw() < 0.5 else ():
            restored.run(Backfill, run.id)
        if draw() < 0.5:
            restored.deliver_all()
            restored.run(Backfill)
        if draw() < 0.5:
            for entry in list(list_quarantined(restored.table, redriven=False)):
                redrive(restored.table, entry)
        return restored

    def _write(self, table: Table) -> None:
        self._numbers += 1
        accept(table, VISIT, self._writers.values(PAGES[self._numbers % 2], self._numbers))
