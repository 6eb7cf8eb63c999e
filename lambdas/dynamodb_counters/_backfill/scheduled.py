"""Verification on a schedule: one run after the other, each in as many invocations as it takes."""

from __future__ import annotations

from collections.abc import Callable
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


def work_on_schedule(
    table: Table,
    make: Callable[..., Verification],
    now: Callable[[], float],
    *,
    begins: bool,
    time_left: Callable[[], float],
) -> Verification | None:
    """Go on with the run that is open, or begin if it is time to; return what is complete now."""
    runs = [run for run in read_control(table).runs if run.kind == "verify"]
    if not runs and not begins:
        return None
    first = min(runs, key=lambda run: run.since, default=None)
    if first is not None and now() < first.since - RUN_OPEN_AFTER + CLOCKS:
        # Another process is opening it right now.
        return None
    verification = make(run=first.id if first is not None else "")
    if first is not None and now() > first.since + LONGEST:
        verification.give_up()
        raise BackfillError(f"run {first.id} was given up: it has not ended in {LONGEST / HOUR:.0f} hours")
    for step in verification.steps():
        if step.phase == COMPLETE:
            return verification
        if time_left() < ENOUGH:
            break
    return None
