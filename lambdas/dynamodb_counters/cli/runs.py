"""Shared parts of commands that work on runs: their options, progress and interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, TypeVar

import click
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from dynamodb_counters._backfill.runner import Runner
from dynamodb_counters._backfill.state import COMPLETE, Progress
from dynamodb_counters._backfill.wiring import make_runner
from dynamodb_counters.cli.session import Session
from dynamodb_counters.cli.show.formats import number, span
from dynamodb_counters.errors import BackfillError

_COUNTED: Final = {
    "waiting": "s",
    "scanning": "items",
    "draining": "shards",
    "withholding": "entries",
    "adding": "groups",
    "comparing": "groups",
}
"""The unit of progress in each phase."""
_SECONDS_PER_LINE: Final = 60.0

Kind = TypeVar("Kind", bound=Runner)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a run works, as given with options."""

    segments: int
    units_per_second: float | None
    run: str


def with_manner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a run; it gets them as `manner`."""

    @wraps(function)
    def command(*arguments: Any, segments: int, units_per_second: float | None, run: str, **options: Any) -> Any:
        return function(*arguments, manner=Manner(segments, units_per_second, run), **options)

    for option in (
        click.option("--run", metavar="ID", default="", help="Go on with a run that was interrupted."),
        click.option("--units-per-second", type=click.FloatRange(0, min_open=True), help="Most units. Default: all."),
        click.option("--segments", type=click.IntRange(1, 100), default=4, show_default=True, help="Scanned at once."),
    ):
        command = option(command)
    return command


def runner_of(session: Session, kind: type[Kind], manner: Manner, **what: Any) -> Kind:
    """The worker on a run of the session's table."""
    return make_runner(
        kind,
        session.table,
        session.client("dynamodbstreams"),
        now=session.service_time,
        run=manner.run,
        segments=manner.segments,
        units_per_second=manner.units_per_second,
        **what,
    )


@dataclass(slots=True)
class Worked:
    """Time and units that a run has taken."""

    run: str = ""
    seconds: float = 0.0
    units: float = 0.0
    items: int = 0
    """Scanned by this process."""
    was_complete: bool = True
    """Whether there was nothing left to do."""

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"run": self.run, "seconds": round(self.seconds), "units": self.units, "items": self.items}


def work_off(session: Session, runner: Runner, again: str) -> Worked:
    """Work a run off and show how far it is; if it breaks off, say that the command `again` goes on with it."""
    worked, began = Worked(), session.clock()
    try:
        with _shown(session) as show:
            for step in runner.steps():
                worked.run, worked.units = step.run, step.units
                worked.was_complete &= step.phase == COMPLETE
                if step.phase == "scanning":
                    worked.items = step.done
                show(step)
    except BackfillError:
        # It is void, or never began.
        raise
    except BaseException:
        if worked.run:
            session.tell(f"run {worked.run} is not complete; go on with it: counters {again} --run {worked.run}")
        raise
    worked.seconds = session.clock() - began
    return worked


@contextmanager
def _shown(session: Session) -> Iterator[Callable[[Progress], None]]:
    """Show phases on standard error: as bars, or without a terminal as lines."""
    known: dict[str, _Phase] = {}
    told_at = 0.0
    is_live = session.err.is_terminal
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[far]}"))
    with Bars(*columns, console=session.err, auto_refresh=False, disable=not is_live) as bars:

        def show(step: Progress) -> None:
            nonlocal told_at
            now, is_new = session.clock(), step.phase not in known
            if is_new:
                for phase in known.values():
                    bars.update(phase.task, completed=1, total=1, far=phase.far(is_over=True))
                if step.phase != COMPLETE:
                    known[step.phase] = _Phase(now, step.done, step, bars.add_task(step.phase, far=""))
            if step.phase == COMPLETE:
                return
            phase = known[step.phase]
            phase.step = step
            if is_new or now >= told_at + (1 / 4 if is_live else _SECONDS_PER_LINE):
                told_at, line = now, phase.line(now)
                if not is_live:
                    session.tell(f"{step.phase}: {line}")
                bars.update(phase.task, completed=step.done, total=step.total or None, far=line, refresh=True)

        yield show


@dataclass(slots=True)
class _Phase:
    began: float
    first: int
    step: Progress
    task: TaskID

    def far(self, *, is_over: bool = False) -> str:
        done = number(self.step.total or self.step.done if is_over else self.step.done)
        of = f" of {number(self.step.total)}" if self.step.total and not is_over else ""
        return f"{done}{of} {_COUNTED.get(self.step.phase, '')}".rstrip()

    def line(self, now: float) -> str:
        """The progress so far, the time left at this rate if that is known, and the units taken."""
        step = self.step
        rate = (step.done - self.first) / (now - self.began) if now > self.began else 0.0
        left = f"{span((step.total - step.done) / rate)} left" if rate > 0 and step.done < step.total else ""
        return ", ".join(filter(None, (self.far(), left, f"{step.units:,.0f} units" if step.units else "")))
