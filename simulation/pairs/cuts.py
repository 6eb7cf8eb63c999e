"""Items and records of a table, what its registry says of names, and which records come after a name's cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from dynamodb_counters._assumptions import SKEW
from dynamodb_counters._control.run_items import RUN_SK_PREFIX
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX
from simulation.memory.memory_stream import Record
from simulation.pairs.backend import Backend

_RUN: Final = "CHECKPOINT#run~"
ENTRY: Final = "DECLARED#"
UNREADABLE: Final = '[{"": "Later"}]'
"""A definition by a later version."""

_DISORDER: Final = 4.0
"""Seconds by which records near a cut may be on its other side: clocks of records, and that they are whole."""

_decoded: Final = lru_cache(1024)(decode)

Image = Mapping[str, Any]


@dataclass(frozen=True)
class Registered:
    """An entry of the registry: a declaration, or a threshold that `watches` an aggregate."""

    name: str
    declaration: Any
    state: str
    at: float
    since: float
    run: str
    is_dropped: bool
    is_fresh: bool
    watches: str

    @classmethod
    def of(cls, item: Image) -> Registered:
        [declaration] = _decoded(item["definition"]["S"])
        at, since = (float(item[name]["N"]) for name in ("at", "since"))
        is_dropped, is_fresh = (bool(item[name]["BOOL"]) for name in ("dropped", "fresh"))
        name, state = item["sk"]["S"].removeprefix(ENTRY), item["state"]["S"]
        return cls(name, declaration, state, at, since, item["run"]["S"], is_dropped, is_fresh, item["watches"]["S"])


@dataclass(frozen=True)
class Position:
    """Where a record lies."""

    shard: str
    sequence: str
    created: float

    @classmethod
    def of(cls, shard: str, record: Record) -> Position:
        change = record["dynamodb"]
        sequence = str(change["SequenceNumber"]).zfill(40)
        return cls(shard, sequence, float(change["ApproximateCreationDateTime"]))


def is_entry(key: Image) -> bool:
    """Whether an item with this key is an entry of the registry."""
    return key["pk"] == {"S": CHECKPOINT_PREFIX} and bool(key["sk"]["S"].startswith(ENTRY))


class Cuts:
    """State of a table and its stream; `wrong` names runs with records on the wrong side of their cuts."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.now = backend.clock()
        self._items = list(backend.items())
        self.history = [(Position.of(shard, record), record) for shard, record in backend.history()]
        self._run_items: dict[str, Image] = {}
        self._cuts: dict[tuple[str, str], str] = {}
        self.entries: dict[str, Registered] = {}
        """What is registered, by name."""
        self.thresholds: list[Registered] = []
        self._read()
        self.wrong: list[str] = []
        self._check_cuts()

    def phase(self, run: str) -> str:
        item = self._run_items.get(run)
        return "" if item is None else str(item["phase"]["S"])

    def complete(self) -> set[str]:
        """The names that readers may rely on."""
        return {name for name, entry in self.entries.items() if entry.state == "complete"}

    def _read(self) -> None:
        for item in self._items:
            pk, sk = item["pk"]["S"], item["sk"]["S"]
            if pk.startswith(_RUN) and sk.startswith("CUT#"):
                self._cuts[pk.removeprefix(_RUN), item["shard"]["S"]] = item["cut"]["S"]
            elif pk == CHECKPOINT_PREFIX and sk.startswith(RUN_SK_PREFIX):
                self._run_items[sk.removeprefix(RUN_SK_PREFIX)] = item
            elif pk == CHECKPOINT_PREFIX and sk.startswith(ENTRY) and item["definition"]["S"] != UNREADABLE:
                entry = Registered.of(item)
                if entry.watches:
                    self.thresholds.append(entry)
                else:
                    self.entries[entry.name] = entry

    def counts(self, name: str, position: Position) -> bool:
        """Whether a name counts a record: whether it comes after the cut of the run that has filled the name."""
        entry = self.entries.get(name)
        return (
            entry is not None
            and entry.state != "waiting"
            and (not entry.run or self._past(entry.run, entry.since, position))
        )

    def _past(self, run: str, since: float, position: Position) -> bool:
        cut = self._cuts.get((run, position.shard))
        if cut is None:
            return position.created >= since
        # The cut may not have been written yet when a record so late came; a record after it may have written it.
        return position.sequence >= cut or position.created >= since + SKEW

    def _check_cuts(self) -> None:
        for run, item in self._run_items.items():
            if item["kind"]["S"] != "backfill" or self.phase(run) != "complete":
                continue
            since = float(item["since"]["N"])
            for position, _ in self.history:
                ahead = position.created - since
                if abs(ahead) > _DISORDER and self._past(run, since, position) != (ahead > 0):
                    self.wrong.append(f"run {run}: a record {ahead:.0f} s from its cut is on the wrong side of it")
                    return
