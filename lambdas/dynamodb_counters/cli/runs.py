"""Shared parts of commands that work on runs: their options, progress and interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, TypeVar

import click
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from dynamodb_counters._backfill.runner import Runner
from dynamodb_counters._backfill.state import COMPLETE, Progress
from dynamodb_counters._backfill.wiring import make_runner
from dynamodb_counters.cli.session import Session
from dynamodb_counters.cli.show.formats import ACCENT, GOOD, QUIET, number, span
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
_BAR: Final = 30

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
    """Show phases on standard error: live, or without a terminal as lines."""
    known: dict[str, _Phase] = {}
    is_live = session.err.is_terminal
    told_at, told = 0.0, ""
    with Live(console=session.err, auto_refresh=False) if is_live else nullcontext() as live:

        def show(step: Progress) -> None:
            nonlocal told_at, told
            now = session.clock()
            for name, phase in known.items():
                phase.is_over |= name != step.phase
            if step.phase != COMPLETE:
                known.setdefault(step.phase, _Phase(now, step.done, step)).step = step
            is_due = step.phase != told or now >= told_at + (1 / 4 if is_live else _SECONDS_PER_LINE)
            if not is_due:
                return
            told, told_at = step.phase, now
            if live is not None:
                live.update(_screen(known, step, now), refresh=True)
            elif step.phase != COMPLETE:
                session.tell(known[step.phase].line(now))

        yield show


@dataclass(slots=True)
class _Phase:
    began: float
    first: int
    step: Progress
    is_over: bool = False

    def far(self) -> str:
        if self.is_over:
            return f"{number(self.step.total or self.step.done)} {_COUNTED.get(self.step.phase, '')}".rstrip()
        of = f" of {number(self.step.total)}" if self.step.total else ""
        return f"{number(self.step.done)}{of} {_COUNTED.get(self.step.phase, '')}".rstrip()

    def left(self, now: float) -> str:
        """The time left at the rate so far; "" if unknown."""
        rate = (self.step.done - self.first) / (now - self.began) if now > self.began else 0.0
        if self.is_over or not rate or self.step.done >= self.step.total:
            return ""
        return f"{span((self.step.total - self.step.done) / rate)} left"

    def line(self, now: float) -> str:
        units = f"{self.step.units:,.0f} units" if self.step.units else ""
        return f"{self.step.phase}: " + ", ".join(filter(None, (self.far(), self.left(now), units)))


def _screen(known: dict[str, _Phase], step: Progress, now: float) -> Group:
    shown = Grid.grid(padding=(0, 2))
    for name, phase in known.items():
        total = phase.step.total or 1
        bar = ProgressBar(total, total if phase.is_over else min(phase.step.done, total), _BAR, finished_style=GOOD)
        shown.add_row(Text(name, "" if phase.is_over else ACCENT), bar, phase.far(), Text(phase.left(now), QUIET))
    return Group(shown, Text(f"run {step.run}, {step.units:,.0f} units", QUIET), "")
