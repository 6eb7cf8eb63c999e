"""Verification on a schedule: one run after the other, each in as many invocations as it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dynamodb_counters._assumptions import CLOCKS, RUN_OPEN_AFTER
from dynamodb_counters._backfill.state import COMPLETE
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._control.control import read_control
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import HOUR, MINUTE
from dynamodb_counters.errors import BackfillError

ENOUGH: Final = MINUTE
"""Seconds that must be left for another step."""

LONGEST: Final = 20 * HOUR
"""A verification that has not come to its end by then is given up: while it is open, every batch is logged."""


@dataclass(frozen=True, slots=True)
class ScheduledVerifier:
    """Verifies a table; `make` makes what works on the run with an id, on a new one for ""."""

    table: Table
    make: Callable[[str], Verification]
    now: Callable[[], float]

    def work(self, *, begins: bool, time_left: Callable[[], float]) -> Verification | None:
        """Go on with what is open, or begin if it is time to; return what is complete now."""
        runs = [run for run in read_control(self.table).runs if run.kind == "verify"]
        if not runs and not begins:
            return None
        first = min(runs, key=lambda run: run.since, default=None)
        if first is not None and self.now() < first.since - RUN_OPEN_AFTER + CLOCKS:
            # Another process is opening it right now.
            return None
        verification = self.make(first.id if first is not None else "")
        if first is not None and self.now() > first.since + LONGEST:
            verification.give_up()
            raise BackfillError(f"run {first.id} was given up: it has not ended in {LONGEST / HOUR:.0f} hours")
        for step in verification.steps():
            if step.phase == COMPLETE:
                return verification
            if time_left() < ENOUGH:
                return None
        return None
