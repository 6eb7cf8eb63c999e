"""How far work is, on standard error: a bar per phase at a terminal, lines without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.progress import BarColumn, Progress, TaskID, TextColumn

from dynamodb_counters.cli.show.console import SafeConsole
from dynamodb_counters.cli.show.formats import number, span


@dataclass(slots=True)
class _Phase:
    task: TaskID
    began: float
    first: int
    over: str = ""
    """How far it is in the end."""


@contextmanager
def progress_on(
    console: SafeConsole, clock: Callable[[], float], *, is_brief: bool = False
) -> Iterator[Callable[..., None]]:
    """Show phases, and how much of their total, 0 if unknown; of brief work no bar stays, and lines come after 10 s."""
    known: dict[str, _Phase] = {}
    is_live, told_at = console.is_terminal, clock()
    pause = 1 / 4 if is_live else 10.0 if is_brief else 60.0
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[far]}"))
    with Progress(*columns, console=console, auto_refresh=False, transient=is_brief, disable=not is_live) as bars:

        def show(name: str, done: int, total: int, *, unit: str = "", consumed: float = 0.0) -> None:
            nonlocal told_at
            now, is_new = clock(), name not in known
            if is_new:
                finish()
                known[name] = _Phase(bars.add_task(name, far=""), now, done)
            phase = known[name]
            phase.over = f"{number(total or done)} {unit}"
            if now < told_at + pause and not (is_new and (is_live or not is_brief)):
                return
            rate = (done - phase.first) / (now - phase.began) if now > phase.began else 0.0
            far = f"{number(done)}{f' of {number(total)}' if total else ''} {unit}".rstrip()
            left = f"{span((total - done) / rate)} left" if rate > 0 and done < total else ""
            told_at, line = now, ", ".join(filter(None, (far, left, f"{consumed:,.0f} units" if consumed else "")))
            if not is_live:
                console.print(f"{name}: {line}", soft_wrap=True)
            bars.update(phase.task, completed=done, total=total or None, far=line, refresh=True)

        def finish() -> None:
            for phase in known.values():
                bars.update(phase.task, completed=1, total=1, far=phase.over)

        yield show
        finish()
