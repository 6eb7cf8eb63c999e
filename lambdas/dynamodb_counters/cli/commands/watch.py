"""``counters watch``: counts and rates as they change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from typing import Any, Final

import click
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Group as Lines
from rich.live import Live
from rich.text import Text

from dynamodb_counters._declarations import Aggregate, Count, Sum, Window
from dynamodb_counters.cli.arguments import duration, fields_of
from dynamodb_counters.cli.failures import DONE, INTERRUPTED, told
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.formats import (
    ACCENT,
    HEADING,
    QUIET,
    WARNING,
    grid,
    group_text,
    moment_text,
    number,
    span,
    sparkline,
    stamp,
)

_TREND: Final = 30
"""Points of a sparkline."""

_SHORTEST_TREND: Final = 5
"""Points of one where there is little room."""


@dataclass
class Watched:
    """One number that is watched, with what is known of its past."""

    declared: Aggregate | Window
    values: Mapping[str, str]
    measure: str
    length: timedelta | None = None
    count: Any = None
    rate: float | None = None
    rates: list[float] = field(default_factory=list)
    _at: float = 0.0

    def see(self, count: Any, now: float) -> None:
        """Note a count; the rate is over the time since the one before."""
        if self.count is not None and now > self._at:
            self.rate = float(count - self.count) / (now - self._at)
            self.rates = [*self.rates, self.rate][-_TREND:]
        self.count, self._at = count, now

    def see_series(self, counts: Sequence[Any], length: timedelta) -> None:
        """Note a window's counts, in order."""
        self.count = sum(counts)
        self.rate = float(self.count) / length.total_seconds()
        self.rates = [float(count) for count in counts]

    @property
    def trend(self) -> str:
        """Its latest rates, as a line."""
        return sparkline([max(0.0, rate) for rate in self.rates])


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="NAME [FIELD=VALUE]… [NAME …]…")
@click.option("--every", type=duration, default="2s", show_default=True, help="Time between two reads.")
@click.option("--last", type=duration, default="1h", show_default=True, help="Length of windows.")
@click.option("--for", "lasting", type=duration, help="End after this time. Default: with Ctrl-C.")
@click.option("--times", type=click.IntRange(1), help="End after so many reads.")
@shared
def watch(
    session: Session,
    targets: tuple[str, ...],
    *,
    every: timedelta,
    last: timedelta,
    lasting: timedelta | None,
    times: int | None,
) -> int:
    """Watch groups of aggregates and windows: each NAME is followed by its group.

    An aggregate's rate is that between two reads, a window's is its mean. Without a terminal, and with --json, each
    read is lines of their own.
    """
    watched = list(_targets(session, targets, last))
    until = session.clock() + lasting.total_seconds() if lasting is not None else math.inf
    is_live = session.out.is_terminal and not session.as_json
    with Live(console=session.out, auto_refresh=False) if is_live else nullcontext() as live:
        try:
            for number_of_reads in count(1):
                problem = _read(session, watched, is_first=number_of_reads == 1)
                if live is not None:
                    live.update(_screen(session, watched, every, problem), refresh=True)
                else:
                    _print_lines(session, watched, problem)
                if number_of_reads == times or session.clock() + every.total_seconds() > until:
                    break
                session.sleep(every.total_seconds())
        except KeyboardInterrupt:
            return INTERRUPTED
    return DONE


def _targets(session: Session, targets: Sequence[str], last: timedelta) -> Iterator[Watched]:
    """Each name with the fields that follow it; an aggregate is watched in all its measures."""
    if "=" in targets[0]:
        raise click.UsageError(f"{targets[0]!r} belongs to nothing: the name of an aggregate or window comes first")
    names = [place for place, text in enumerate(targets) if "=" not in text]
    for begin, end in pairwise([*names, len(targets)]):
        declared = session.find_counted(targets[begin])
        values = fields_of(targets[begin + 1 : end], declared.fields, needed=declared.fields)
        if isinstance(declared, Window):
            yield Watched(declared, values, f"last {span(last)}", last)
        else:
            for name, measure in declared.measures.items():
                if isinstance(measure, Count | Sum):
                    yield Watched(declared, values, name)


def _read(session: Session, watched: Sequence[Watched], *, is_first: bool) -> str | None:
    """Read all that is watched; what kept it from being read, if it was readable before."""
    try:
        _read_groups(session, [one for one in watched if one.length is None])
        for one in watched:
            if isinstance(one.declared, Window) and one.length is not None:
                one.see_series(_series(session, one.declared, one.values, one.length), one.length)
    except (ClientError, BotoCoreError) as error:
        if is_first:
            raise
        return told(error)[1]
    return None


def _read_groups(session: Session, watched: Sequence[Watched]) -> None:
    wanted = [(one.declared, one.values) for one in watched if isinstance(one.declared, Aggregate)]
    now = session.clock()
    for one, group in zip(watched, session.counters.get_many(wanted) if wanted else [], strict=True):
        one.see(group.measures[one.measure], now)


def _series(session: Session, window: Window, values: Mapping[str, str], length: timedelta) -> list[Any]:
    """The window cut into as many parts as a sparkline has places, or as its precision allows."""
    unit = timedelta(seconds=window._unit)
    step = max(1, -(-length // (unit * _TREND))) * unit
    end = datetime.fromtimestamp(-(-session.clock() // window._unit) * window._unit, UTC)
    return [one.count for one in session.counters.window(window, values).series(end - length, end, step=step)]


def _screen(session: Session, watched: Sequence[Watched], every: timedelta, problem: str | None) -> Lines:
    head = Text.assemble(
        (session.table.name, HEADING),
        (f"  {moment_text(session.clock())}, every {span(every)}; Ctrl-C ends", QUIET),
    )
    columns = ("name", "group", "measure", "count", "per second")
    shown = grid(*columns, "trend", numbers=columns[3:], keep=("name", "trend"))
    rows = [_cells(one) for one in watched]
    taken = sum(max(len(cell) for cell in (name, *cells)) + 2 for name, *cells in zip(columns, *rows, strict=True))
    for cells, one in zip(rows, watched, strict=True):
        shown.add_row(*cells, one.trend[-max(_SHORTEST_TREND, session.out.width - taken) :])
    shown.columns[2].style = QUIET
    shown.columns[3].style = HEADING
    shown.columns[5].style = ACCENT
    return Lines(head, "", shown, *([Text(problem, WARNING)] if problem else []))


def _cells(one: Watched) -> tuple[str, ...]:
    rate = "" if one.rate is None else f"{one.rate:,.2f}"
    return one.declared.name, group_text(one.values) or "in total", one.measure, number(one.count), rate


def _print_lines(session: Session, watched: Sequence[Watched], problem: str | None) -> None:
    at = stamp(session.clock())
    if problem:
        session.tell(f"{at} {problem}")
        return
    document = {"at": at, "watched": [_plain(one) for one in watched]}
    lines = [
        f"{at} {one.declared.name} {group_text(one.values)}".rstrip()
        + f" {one.measure}: {number(one.count)}"
        + ("" if one.rate is None else f", {one.rate:,.2f} per second")
        for one in watched
    ]
    session.emit(document, lines)


def _plain(one: Watched) -> dict[str, Any]:
    return {
        "name": one.declared.name,
        "values": dict(one.values),
        "measure": one.measure,
        "count": one.count,
        "per_second": one.rate,
    }
