"""Items and records of a table, and which records come after the cut of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from dynamodb_counters._assumptions import SKEW
from dynamodb_counters._control.run_items import RUN_SK_PREFIX
from dynamodb_counters._declarations.groups import generation_number
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX
from simulation.memory.memory_stream import Record
from simulation.schedules.backend import Backend

_RUN: Final = "CHECKPOINT#run~"
_DISORDER: Final = 4.0
"""Seconds by which records near a cut may be on its other side: clocks of records, and that they are whole."""

Image = Mapping[str, Any]


class Cuts:
    """State of a table and its stream; `wrong` names runs with records on the wrong side of their cuts."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._items = list(backend.items())
        self._history = list(backend.history())
        self._run_items: dict[str, Image] = {}
        self._cuts: dict[tuple[str, str], str] = {}
        self._positions = self._read_cuts()
        self.wrong: list[str] = []
        self._check_cuts()

    def phase(self, run: str) -> str:
        item = self._run_items.get(run)
        return "" if item is None else str(item["phase"]["S"])

    def _read_cuts(self) -> dict[int, tuple[str, float]]:
        """The run that fills each generation, and when it begins."""
        found: dict[int, tuple[str, float]] = {}
        for item in self._items:
            pk, sk = item["pk"]["S"], item["sk"]["S"]
            if (pk, sk[: len(RUN_SK_PREFIX)]) == (CHECKPOINT_PREFIX, RUN_SK_PREFIX):
                run = sk.removeprefix(RUN_SK_PREFIX)
                self._run_items[run] = item
                if item["kind"]["S"] == "backfill":
                    number = generation_number(json.loads(item["names"]["S"])[0])
                    found[number] = run, float(item["since"]["N"])
            elif pk.startswith(_RUN) and sk.startswith("CUT#"):
                self._cuts[pk.removeprefix(_RUN), item["shard"]["S"]] = item["cut"]["S"]
        return found

    def _since(self, name: str, shard: str, record: Record) -> bool:
        """Whether a generation counts a record: whether it comes after the cut of the run that fills it."""
        position = self._positions.get(generation_number(name))
        return position is None or self._past(*position, shard, record)

    def _past(self, run: str, since: float, shard: str, record: Record) -> bool:
        cut, created = self._cuts.get((run, shard)), float(record["dynamodb"]["ApproximateCreationDateTime"])
        if cut is None:
            return created >= since
        # The cut may not have been written yet when a record so late came; a record after it may have written it.
        return str(record["dynamodb"]["SequenceNumber"]).zfill(40) >= cut or created >= since + SKEW

    def _check_cuts(self) -> None:
        for run, since in self._positions.values():
            if self.phase(run) != "complete":
                continue
            for shard, record in self._history:
                ahead = float(record["dynamodb"]["ApproximateCreationDateTime"]) - since
                if abs(ahead) > _DISORDER and self._past(run, since, shard, record) != (ahead > 0):
                    self.wrong.append(f"run {run}: a record {ahead:.0f} s from its cut is on the wrong side of it")
                    return
