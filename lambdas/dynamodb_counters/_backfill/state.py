"""Where a run is, as its item holds it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from dynamodb_counters._backfill.shards import Lineage
from dynamodb_counters._control.run_items import Run
from dynamodb_counters._items.bookkeeping import read_fields

OPENING: Final = "opening"
WAITING: Final = "waiting"
SCANNING: Final = "scanning"
DRAINING: Final = "draining"
COMPLETE: Final = "complete"
VOID: Final = "void"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run is: seconds, items, shards, entries or groups of the phase that are done; total 0 if unknown."""

    phase: str
    run: str
    done: int = 0
    total: int = 0
    units: float = 0.0
    """Capacity units consumed by this process."""


@dataclass(slots=True)
class State:
    """A run as its item holds it."""

    run: Run
    phase: str
    segments: int
    lineage: Lineage
    described_at: float
    ended_at: float = 0.0
    items: int = 0
    parts_done: int = 0
    parts: int = 1
    withheld: int = 0
    """Entries of the quarantine with what could not be folded."""

    def values(self) -> dict[str, Any]:
        names = (field.name for field in fields(self) if field.name not in ("run", "lineage"))
        return {
            "kind": self.run.kind,
            "since": self.run.since,
            "names": json.dumps(self.run.names),
            "shards": json.dumps([self.lineage.parents, sorted(self.lineage.open)]),
            **{name: getattr(self, name) for name in names},
        }

    @classmethod
    def of(cls, run: str, item: Mapping[str, Any]) -> State:
        parents, is_open = json.loads(item["shards"]["S"])
        begun = Run(run, item["kind"]["S"], int(item["since"]["N"]), tuple(json.loads(item["names"]["S"])))
        return cls(begun, lineage=Lineage(parents, frozenset(is_open)), **read_fields(cls, item))
