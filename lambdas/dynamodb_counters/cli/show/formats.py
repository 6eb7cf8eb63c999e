"""How numbers, moments, spans and grids look, alike in all commands."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final

from rich import box
from rich.console import JustifyMethod
from rich.table import Table as Grid
from rich.text import Text

from dynamodb_counters._reads.span_reads import Distribution
from dynamodb_counters._timeline.tiers import DAY, HOUR, MINUTE
from dynamodb_counters.cli.show.console import visible

HEADING: Final = "bold"
QUIET: Final = "bright_black"
ACCENT: Final = "cyan"
GOOD: Final = "green"
WARNING: Final = "yellow"
BAD: Final = "red"

SHARES: Final = ("0.5", "0.9", "0.95", "0.99", "1")
"""Shares of a distribution whose percentiles are shown; 1 is its maximum."""

_MOST_FRACTION: Final = 4


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


def distribution_rows(found: Distribution) -> dict[str, str | Text]:
    names = {share: "max" if share == SHARES[-1] else f"p{float(share) * 100:g}" for share in SHARES}
    return {"count": number(found.count), **{names[share]: number(found.p(float(share))) for share in SHARES}}


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
    """A definition as people compare it."""
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
