"""Where a run is, as its item holds it, and the shards it has met."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from dynamodb_counters._assumptions import LINEAGE_KEPT
from dynamodb_counters._control.run_items import ONLY_SHARD, Run
from dynamodb_counters._items.bookkeeping import read_fields
from dynamodb_counters._streams import Shard, depth_of

OPENING: Final = "opening"
WAITING: Final = "waiting"
SCANNING: Final = "scanning"
DRAINING: Final = "draining"
COMPARING: Final = "comparing"
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
class Lineage:
    """All shards met so far: DynamoDB forgets them after a day."""

    parents: dict[str, str] = field(default_factory=dict)
    open: frozenset[str] = frozenset()

    def meet(self, shards: Iterable[Shard]) -> None:
        known = list(shards)
        self.parents |= {shard.id: shard.parent or self.parents.get(shard.id, "") for shard in known}
        self.open = frozenset(shard.id for shard in known if shard.is_open)

    def depth(self, shard: str) -> int:
        return depth_of(shard, self.parents)

    def waiting(self, acknowledged: Mapping[str, bool]) -> list[str]:
        """Open shards of which neither they nor a shard they came out of has acknowledged."""

        # Without the latter, shards that go on splitting would never have acknowledged all.
        def is_done(shard: str) -> bool:
            return bool(shard) and (acknowledged.get(shard, False) or is_done(self.parents.get(shard, "")))

        return [] if acknowledged.get(ONLY_SHARD) else sorted(shard for shard in self.open if not is_done(shard))


@dataclass(slots=True)
class State:
    run: Run
    phase: str
    segments: int
    described_at: float
    lineage: Lineage = field(default_factory=Lineage)
    ended_at: float = 0.0
    items: int = 0
    parts_done: int = 0
    parts: int = 1
    withheld: int = 0

    def has_rested(self, now: float) -> bool:
        """Whether shards may be forgotten by now that it must know in its phase."""
        return now > self.described_at + LINEAGE_KEPT and self.phase in (SCANNING, DRAINING, COMPARING)

    def values(self) -> dict[str, Any]:
        names = (each.name for each in fields(self) if each.name not in ("run", "lineage"))
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
