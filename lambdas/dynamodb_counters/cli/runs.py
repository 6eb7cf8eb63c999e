"""Shared parts of commands that work on runs: their options, progress and interruption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from dynamodb_counters._backfill.runner import COMPLETE, Runner
from dynamodb_counters.cli.arguments import ABOVE_0
from dynamodb_counters.cli.session import Session, options
from dynamodb_counters.cli.show.progress import progress_on
from dynamodb_counters.errors import BackfillError

Kind = TypeVar("Kind", bound=Runner)

_COUNTED: Final = {
    "waiting": "s",
    "scanning": "items",
    "draining": "shards",
    "withholding": "entries",
    "adding": "groups",
    "comparing": "groups",
}
"""The unit of progress in each phase."""

with_pace: Final = options(
    click.option("--segments", type=click.IntRange(1, 100), default=4, help="Scanned at once."),
    click.option("--units-per-second", type=ABOVE_0, help="Most units. Default: all."),
)
with_manner: Final = options(
    with_pace,
    click.option("--run", metavar="ID", default="", show_default=False, help="Go on with an interrupted run."),
)
"""The options of a run: how it works, as `runner_of` takes it."""


def runner_of(session: Session, kind: type[Kind], **how: Any) -> Kind:
    return kind.of_table(session.table, session.client("dynamodbstreams"), now=session.service_time, **how)


@dataclass(slots=True)
class Worked:
    run: str = ""
    seconds: float = 0.0
    units: float = 0.0
    items: int = 0
    """Scanned by this process."""
    was_complete: bool = True
    """Whether there was nothing left to do."""

    def document(self) -> dict[str, Any]:
        return {"run": self.run, "seconds": round(self.seconds), "units": self.units, "items": self.items}


def work_off(session: Session, runner: Runner, again: str) -> Worked:
    """Work a run off and show how far it is; if it breaks off, say that the command `again` goes on with it."""
    worked, began = Worked(), session.clock()
    try:
        with progress_on(session.err, session.clock) as show:
            for step in runner.steps():
                worked.run, worked.units = step.run, step.units
                worked.was_complete &= step.phase == COMPLETE
                if step.phase == "scanning":
                    worked.items = step.done
                if step.phase != COMPLETE:
                    unit = _COUNTED.get(step.phase, "")
                    show(step.phase, step.done, step.total, unit=unit, consumed=step.units)
    except BaseException as error:
        # After a BackfillError it is void, or never began.
        if worked.run and not isinstance(error, BackfillError):
            session.tell(f"run {worked.run} is not complete; go on with it: counters {again} --run {worked.run}")
        raise
    worked.seconds = session.clock() - began
    return worked
