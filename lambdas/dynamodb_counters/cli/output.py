"""What every command prints: text made safe, numbers, moments, spans, grids, progress and charts, alike in all."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final

from rich import box
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from dynamodb_counters._timeline.tiers import DAY, HOUR, MINUTE

_PLAIN_WIDTH: Final = 100
_LIKELY: Final = re.compile(r"[^ -~]")
"""All but the ASCII that prints: few characters are left to look at."""

HEADING: Final = "bold"
QUIET: Final = "bright_black"
ACCENT: Final = "cyan"
GOOD: Final = "green"
WARNING: Final = "yellow"
BAD: Final = "red"

_MOST_FRACTION: Final = 4


def visible(text: str) -> str:
    r"""Text with what does not just print escaped.

    >>> print(visible("/é\x1b]0;x\x07\n"))
    /é\x1b]0;x\x07\n
    """
    return _LIKELY.sub(lambda one: one[0] if one[0].isprintable() else one[0].encode("unicode_escape").decode(), text)


class SafeConsole(Console):
    """A console that takes text as it is, names hold brackets, and shows it escaped: each text is one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """Before anything measures the text."""
        return super().render_str(visible(text), **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """All output comes through here, also what lies within it."""
        return super().render(_escaped(renderable) if isinstance(renderable, Text) else renderable, options)


def make_console(*, stderr: bool = False) -> SafeConsole:
    stream = sys.stderr if stderr else sys.stdout
    return SafeConsole(stderr=stderr, width=None if stream.isatty() else _PLAIN_WIDTH)


def _escaped(text: Text) -> Text:
    found = [place for place, one in enumerate(text.plain) if not one.isprintable()]
    if not found:
        return text
    parts = text.divide([end for place in found for end in (place, place + 1)])
    for part in parts:
        part.plain = visible(part.plain)
    return text.blank_copy().append_text(Text().join(parts))


def number(value: Any) -> str:
    """A number with thousands separated, and no more decimals than help; a dash for none."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    rounded = round(Decimal(value), _MOST_FRACTION)
    return f"{rounded:,f}".rstrip("0").rstrip(".") if rounded % 1 else f"{int(rounded):,}"


def counted(count: int, one: str, many: str = "") -> str:
    return f"{number(count)} {one if count == 1 else many or f'{one}s'}"


def moment_text(when: datetime | float, tz: tzinfo = UTC) -> str:
    local = (datetime.fromtimestamp(when, UTC) if isinstance(when, int | float) else when).astimezone(tz)
    return f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}"


def stamp(seconds: float) -> str:
    """A moment as JSON has it: ISO 8601 in UTC."""
    return datetime.fromtimestamp(round(seconds), UTC).isoformat().replace("+00:00", "Z")


def span(length: timedelta | float) -> str:
    """A length of time in its two greatest units: 1 d 1 h."""
    rest = round(length.total_seconds() if isinstance(length, timedelta) else length)
    parts = []
    for unit, seconds in (("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", 1)):
        times, rest = divmod(rest, seconds)
        parts.append(f"{times} {unit}" if times else "")
    first = next((place for place, part in enumerate(parts) if part), len(parts) - 1)
    return " ".join(filter(None, parts[first : first + 2])) or "0 s"


def json_lines(document: Mapping[str, Any] | None) -> list[str]:
    return json.dumps(document, indent=2, sort_keys=True).splitlines() if document else []


def group_text(values: Mapping[str, object]) -> str:
    return visible(" ".join(f"{name}={value}" for name, value in values.items()))


def reason_text(reason: str) -> str:
    """A reason without the names and the kind of error, once if it is the same for all names."""
    parts = (re.sub(r"^([\w-]+: )?(\w+Error: )?", "", part) for part in reason.split("; "))
    return "; ".join(dict.fromkeys(parts))


def grid(*columns: str, numbers: Sequence[str] = (), keep: Sequence[str] = ("",)) -> Grid:
    """A table of few lines; where it is too narrow, text wraps, but neither numbers nor what to `keep`."""
    made = Grid(box=box.SIMPLE_HEAD, header_style=QUIET, border_style=QUIET, pad_edge=False, padding=(0, 1, 0, 0))
    made.show_edge = False
    for column in columns:
        justify: JustifyMethod = "right" if column in numbers else "left"
        made.add_column(column, justify=justify, overflow="fold", no_wrap=column in numbers or column in keep)
    return made


def pairs(rows: Mapping[str, str | Text], *, numbers: bool = False) -> Grid:
    """Labels and what they label, without lines."""
    made = Grid.grid(padding=(0, 2))
    made.add_column(style=QUIET, no_wrap=True)
    made.add_column(justify="right" if numbers else "left")
    for label, value in rows.items():
        made.add_row(label, value)
    return made


@contextmanager
def progress_on(
    console: SafeConsole, clock: Callable[[], float], *, is_brief: bool = False
) -> Iterator[Callable[..., None]]:
    """Show phases, and how much of their total, 0 if unknown; of brief work no bar stays, and lines come after 10 s."""
    tasks: dict[str, TaskID] = {}
    is_live, told_at = console.is_terminal, clock()
    pause = 1 / 4 if is_live else 10.0 if is_brief else 60.0
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[far]}"))
    options: dict[str, Any] = {"auto_refresh": False, "transient": is_brief, "disable": not is_live, "get_time": clock}
    with Progress(*columns, console=console, speed_estimate_period=math.inf, **options) as bars:

        def show(name: str, done: int, total: int, *, unit: str = "", consumed: float = 0.0) -> None:
            nonlocal told_at
            now, is_new = clock(), name not in tasks
            if is_new:
                finish()
                tasks[name] = bars.add_task(name, total=None, far="")
            bars.update(tasks[name], completed=done, total=total or None, end=f"{number(total or done)} {unit}")
            if now < told_at + pause and not (is_new and (is_live or not is_brief)):
                return
            far = f"{number(done)}{f' of {number(total)}' if total else ''} {unit}".rstrip()
            seconds = bars.tasks[tasks[name]].time_remaining
            told_at, left = now, f"{span(seconds)} left" if seconds else ""
            line = ", ".join(filter(None, (far, left, f"{consumed:,.0f} units" if consumed else "")))
            if not is_live:
                console.print(f"{name}: {line}", soft_wrap=True)
            bars.update(tasks[name], far=line, refresh=True)

        def finish() -> None:
            for task in bars.tasks:
                bars.update(task.id, completed=1, total=1, far=task.fields["end"])

        yield show
        finish()
