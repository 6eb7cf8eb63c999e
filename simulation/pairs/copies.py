"""Restores: a copy of the table as of any moment, which is deployed, written to, and repaired in the end."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from counters_cli.backfill import Backfill
from counters_lambda.counting.batch import Aggregator
from counters_lambda.counting.runner import Runner as Work
from counters_lambda.counting.verification import Difference, Verification
from dynamodb_counters._declarations import Aggregate, Declaration, Direct, Window
from dynamodb_counters._quarantine import list_quarantined, redrive
from dynamodb_counters._registry import read_registry
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept
from dynamodb_counters.errors import BackfillError
from simulation.faults.process import in_disorder
from simulation.memory.memory_stream import Record
from simulation.oracle.aggregates import Group, Groups, add_all
from simulation.pairs import features
from simulation.pairs.apart import Backend
from simulation.pairs.audit import audit
from simulation.pairs.backend import MemoryBackend, RestoredTable
from simulation.pairs.calls import Runner
from simulation.pairs.declared import VISIT
from simulation.pairs.engine import Act, Engine
from simulation.pairs.function import QUARANTINE_SECONDS
from simulation.pairs.ledger import HeardClient, Ledger, Purpose
from simulation.pairs.truth import Image, Truth, added_by_image
from simulation.pairs.writers import PAGES, Writers

_MOST_STEPS: Final = 20_000  # Of a run, beside which something is written.


class Traffic:
    """A table with its aggregator, among whose traffic processes work on runs."""

    settled_after = 1800.0
    """Seconds after which nothing is in the way of a run."""
    tries = 2
    """One backfill that meets what a transaction had counted ends, and the next one empties the name first."""

    def __init__(self, backend: MemoryBackend, rng: random.Random, declared: tuple[Declaration, ...]) -> None:
        self.backend, self.random, self.declared, self.clock = backend, rng, declared, backend.clock
        self.table = self._table(backend.client)
        self._delivered: dict[str, int] = {}
        self.process = self.aggregator(backend.client)
        self.process.handle({})

    def write(self) -> None:
        """Write something."""

    def deliver(self, most: int = 10**6) -> bool:
        """Deliver up to so many records of each shard; return whether there were any."""
        number = 0
        for shard in self.random.sample(shards := self.backend.stream.shards(), len(shards)):
            start = self._delivered.get(shard.id, 0)
            if batch := self.backend.stream.read(shard.id, None, 10**6).records[start : start + most]:
                self.process.handle({"shardId": shard.id, "Records": batch})
                self._delivered[shard.id] = start + len(batch)
                number += len(batch)
        return number > 0

    def deliver_all(self) -> None:
        while self.deliver():
            pass

    def run(self, kind: Callable[..., Work], **options: Any) -> Runner:
        """Have a process work on a run until it ends, among traffic."""
        runner = Runner(self.backend, self.random, kind=kind, **options)
        while not self.step(runner):
            pass
        return runner

    def step(self, runner: Runner) -> bool:
        """Let a run go on to its next step; return whether it has ended."""
        if runner.step(None):
            assert isinstance(runner.error, BackfillError | None), runner.error
            return True
        # In no time, a run that reads item by item would never come to the end of what is written beside it.
        if self.random.random() < 0.05 and runner.actor.steps < _MOST_STEPS:
            self.write()
        if self.random.random() < 0.2:
            self.deliver(self.random.randint(1, 20))
        if runner.is_asleep:
            self.clock.advance(self.random.uniform(0.5, 3))
        return False

    def fill(self) -> None:
        """Run `counters backfill` until every name is complete."""
        for _ in range(self.tries):
            registry = read_registry(self.table)
            if all(entry.is_complete for entry in registry.names.values()):
                return
            self.clock.advance(self.settled_after)
            for run in [*(run.id for run in registry.backfills), ""]:
                self.run(Backfill, run=run)

    def repair(self, **options: Any) -> Verification:
        """Run `counters verify --repair`, until nothing is in its way."""
        for _ in range(self.tries):
            runner = self.run(partial(Verification, **options))
            if runner.error is None:
                work: Verification = runner.work
                work.repair()
                return work
            self.clock.advance(self.settled_after)
        raise AssertionError(runner.error)

    def aggregator(self, client: Any) -> Aggregator:
        return Aggregator(self._table(client), self.declared, quarantine_retention_seconds=QUARANTINE_SECONDS)

    def _table(self, client: Any) -> Table:
        table = Table(self.backend.name, client, self.clock, sleep=self.clock.advance, jitter=self.random.random)
        table.__dict__["side_by_side"] = in_disorder(self.random)
        return table


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

    def doubts(self, declaration: Declaration) -> set[Group]:
        """Return groups that may count what is gone, or changed while it waited: nothing shows what the copy met."""
        if isinstance(declaration.source, Aggregate | Direct):
            return set()
        groups: Groups = {}
        items, self._items = self._items, []
        entries, self._entries = self._entries, []
        self._add_events(groups, declaration)
        self._items, self._entries = items, entries
        for entry in entries:
            if entry.sign > 0 and self._awaits(entry, declaration.name) and not self._is_shown(entry.image):
                add_all(groups, added_by_image(declaration, entry.image))
        return set(groups)

    def _is_shown(self, image: Image) -> bool:
        """Return whether an event or item is as it was when put aside; rows of a chunk come and go by themselves."""
        return "_chunk" in image or image in self._items


def wrong_after(
    differences: Iterable[Difference], backend: Backend, declared: Iterable[Declaration], ledger: Ledger | None = None
) -> list[str]:
    """Return counts that are neither exact nor unknown where a repair had to count what no aggregator has met."""
    truth = _CopyTruth(backend, ledger or Ledger())
    unknown = {name: truth.doubts(declaration) for name, declaration in truth.registered.items()}
    wrong: list[str] = []
    for difference in differences:
        declaration = truth.registered[difference.ref[0]]
        if difference.status == "unknown" and declaration.on_expiry == "subtract":
            wrong.append(f"{difference.ref} is unknown, which nothing explains")
        if difference.status != "drifted":
            unknown[declaration.name].add(truth.group_of(declaration, dict(difference.group)))

    def is_unknown(declaration: Declaration, group: Group) -> bool:
        # Aggregates over others are as exact as these.
        source = declaration.source
        is_over = isinstance(source, Aggregate) and bool(unknown[source.name] or is_unknown(source, ()))
        # A window's groups are hours here, and a verification's are all its buckets.
        timeless = group[:-1] if isinstance(declaration, Window) else group
        return is_over or not unknown[declaration.name].isdisjoint((group, timeless))

    return wrong + audit(backend, declared, whole=False, truth=truth, is_unknown=is_unknown, fails_for=None)


class _Restored(Traffic):
    """A copy, on which visits are written."""

    def __init__(
        self, table: RestoredTable, rng: random.Random, declared: tuple[Declaration, ...], writers: Writers
    ) -> None:
        super().__init__(table, rng, declared)
        self._writers, self._numbers = writers, 100

    def write(self) -> None:
        self._numbers += 1
        accept(self.table, VISIT, self._writers.values(PAGES[self._numbers % 2], self._numbers))


class Restoring:
    """Copies the table once, at some time, and restores the copy in the end."""

    def __init__(self, engine: Engine, writers: Writers) -> None:
        self._engine, self._writers = engine, writers
        self._copied: _Copied | None = None
        self._may_copy = (
            "copy" not in engine.without and isinstance(engine.backend, MemoryBackend) and engine.rng.random() < 0.5
        )

    def acts(self) -> Iterable[Act]:
        if self._may_copy:
            yield 2, self._copy

    def _copy(self) -> None:
        engine, self._may_copy = self._engine, False
        table = RestoredTable(engine.backend, engine.clock, engine.seed)  # type: ignore[arg-type]
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
        restored.fill()
        work = restored.repair()
        restored.deliver_all()
        engine.note(features.RESTORED)
        backend: Any = _CopiedTable(copied)
        return [f"restored: {text}" for text in wrong_after(work.differences, backend, copied.declared, copied.ledger)]

    def _deployed(self, copied: _Copied) -> Traffic:
        """Deploy an aggregator on the copy; go on with runs, backfill and redrive, or not."""
        engine, draw = self._engine, self._engine.rng.random
        copied.table.begin()
        restored = _Restored(copied.table, engine.rng, copied.declared, self._writers)
        restored.write()
        restored.deliver(3)
        engine.clock.advance(Traffic.settled_after)
        for run in read_registry(restored.table).backfills if draw() < 0.5 else ():
            restored.run(Backfill, run=run.id)
        if draw() < 0.5:
            restored.deliver_all()
            restored.run(Backfill)
        if draw() < 0.5:
            for entry in list(list_quarantined(restored.table, redriven=False)):
                redrive(restored.table, entry)
        return restored
