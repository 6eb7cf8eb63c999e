"""Restores: a copy of the table, which catches up with what the original's stream still has for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._recovery.catch_up import CatchUp
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import DAY
from dynamodb_counters.testing._counting import one_by_one
from dynamodb_counters.testing._dynamodb.memory_stream import Record
from simulation.faults.disorder import in_disorder
from simulation.memory_table import MemoryTable
from simulation.oracle.eras import HISTORY_KEY
from simulation.oracle.specs import declarations
from simulation.pairs import features
from simulation.pairs.audit import audit
from simulation.pairs.engine import Act, Engine
from simulation.pairs.ledger import Ledger
from simulation.pairs.truth import Truth
from simulation.schedules.restored_tables import Copy, Reader, all_records, copied, count_own_stream
from simulation.schedules.sandbox import QUARANTINE_SECONDS

_APART: Final = 5.0
"""Seconds around a copy within which a direct count, or an erasure that keeps counts, may be in it or not."""


@dataclass
class _Restored:
    """A copy as an audit looks at it, with the original's records and ledger of when it was made."""

    copy: Copy
    at: float
    records: list[tuple[str, Record]]
    ledger: Ledger
    declared: tuple[Any, ...]

    def __post_init__(self) -> None:
        self.name, self.client, self.clock = self.copy.name, self.copy.client, self.copy.clock

    def items(self) -> Iterable[Mapping[str, Any]]:
        return self.copy.items()

    def history(self) -> Iterable[tuple[str, Record]]:
        return self.records


class Restoring:
    """Copies the table once, at some time, and has the copy catch up in the end."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._restored: _Restored | None = None
        self._left = isinstance(engine.backend, MemoryTable) and engine.rng.random() < 0.5

    def acts(self) -> Iterable[Act]:
        if self._left and not self._engine.deliveries.has_given_up:
            yield 2, self._copy

    def _copy(self) -> None:
        engine, self._left = self._engine, False
        engine.clock.advance(_APART)
        made = copied(engine.backend, engine.seed)
        records, declared = list(engine.backend.history()), declarations(engine.deployments.subjects)
        self._restored = _Restored(made, engine.clock(), records, deepcopy(engine.ledger), declared)
        engine.clock.advance(_APART)

    def wrong(self) -> list[str]:
        """Catch up, count what comes of it, and compare."""
        restored, engine = self._restored, self._engine
        if restored is None or engine.deliveries.has_given_up or engine.clock() > restored.at + DAY:
            # By then, DynamoDB Streams has forgotten what the copy lacks.
            return []
        rng, clock = engine.rng, engine.clock
        table = one_by_one(Table(restored.name, restored.client, "put", clock, sleep=clock.advance, jitter=rng.random))
        table.__dict__["side_by_side"] = in_disorder(rng)
        has_history = any("history" in item for item in restored.items())
        original: Any = Reader(engine.backend.stream)
        own: Any = Reader(restored.copy.stream)
        told = None if has_history else restored.declared
        catch_up = CatchUp(table, original, own, "old", declarations=told, at=restored.at)
        catch_up.count(catch_up.find())
        aggregator = Aggregator(table, restored.declared, quarantine_retention_seconds=QUARANTINE_SECONDS)
        count_own_stream(aggregator, restored.copy.stream)
        if not has_history:
            # The copy's own first takeover says by which declarations the original's records count.
            stream = restored.copy.stream
            own_records = [(shard.id, record) for shard in stream.shards() for record in all_records(stream, shard.id)]
            takeovers = [one for one in own_records if one[1]["dynamodb"]["Keys"] == HISTORY_KEY]
            restored.records += [one for one in takeovers if "history" in one[1]["dynamodb"]["NewImage"]]
        engine.note(features.RESTORED)
        backend: Any = restored
        truth = Truth(backend, restored.ledger)
        return [f"restored: {text}" for text in audit(backend, restored.declared, whole=False, truth=truth)]
