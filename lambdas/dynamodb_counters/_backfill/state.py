"""Where a run is, as its item tells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._backfill.shards import Lineage
from dynamodb_counters._control.run_items import Run

OPENING: Final = "opening"
WAITING: Final = "waiting"
SCANNING: Final = "scanning"
DRAINING: Final = "draining"
COMPLETE: Final = "complete"
VOID: Final = "void"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a backfill is.

    Parameters
    ----------
    phase : {"waiting", "scanning", "draining", "withholding", "adding", "complete"}
    run : str
        The run's id, by which another process goes on with it.
    done, total : int
        Of the phase: seconds, items scanned, shards, entries, groups; total 0 if nobody knows.
    units : float
        Capacity units consumed by this process.
    """

    phase: str
    run: str
    done: int = 0
    total: int = 0
    units: float = 0.0


@dataclass(slots=True)
class State:
    """What the run's item tells."""

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
        shards = json.dumps([self.lineage.parents, sorted(self.lineage.open)])
        return {
            "kind": self.run.kind,
            "since": self.run.since,
            "names": json.dumps(self.run.names),
            "phase": self.phase,
            "segments": self.segments,
            "shards": shards,
            "described_at": self.described_at,
            "ended_at": self.ended_at,
            "items": self.items,
            "parts_done": self.parts_done,
            "parts": self.parts,
            "withheld": self.withheld,
        }

    @classmethod
    def of(cls, run: str, item: Mapping[str, Any]) -> State:
        parents, is_open = json.loads(item["shards"]["S"])
        names = tuple(json.loads(item["names"]["S"]))
        return cls(
            Run(run, item["kind"]["S"], int(item["since"]["N"]), names),
            item["phase"]["S"],
            int(item["segments"]["N"]),
            Lineage(parents, frozenset(is_open)),
            float(item["described_at"]["N"]),
            float(item["ended_at"]["N"]),
            int(item["items"]["N"]),
            int(item["parts_done"]["N"]),
            int(item["parts"]["N"]),
            int(item["withheld"]["N"]),
        )
