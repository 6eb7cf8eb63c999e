"""Bars of block characters with axes, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import pairwise
from typing import Final

from rich.text import Text

from dynamodb_counters._timeline.tiers import DAY, HOUR, MINUTE
from dynamodb_counters.cli.show.formats import ACCENT, QUIET, number

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_HEIGHT: Final = 12
_FEWEST_TICKS: Final = 3
_MOST_TICKS: Final = 6
_FACTORS: Final = (1, 2, 2.5, 5)
_WIDEST: Final = 6
"""Columns of a bar."""

_SPACINGS: Final = (1, 5, 15, 30, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR)
_LONG_SPACINGS: Final = (12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 364 * DAY)


@dataclass(frozen=True)
class Point:
    """A count and when it began."""

    start: datetime
    count: float


def bar_chart(
    points: Sequence[Point], width: int, tz: tzinfo, merge: Callable[[Iterable[float]], float] = sum
) -> tuple[list[Text], int]:
    """Draw points that follow each other; neighbors `merge` to fit the width, to so many points per bar."""
    merged = 1
    while True:
        parts = (points[first : first + merged] for first in range(0, len(points), merged))
        bars = [Point(part[0].start, merge(one.count for one in part)) for part in parts]
        tick, ticks = _scale([one.count for one in bars])
        labels = [number(tick * place) for place in range(ticks + 1)]
        margin = max(map(len, labels))
        room = max(1, width - margin - 3)
        if len(bars) <= room:
            break
        merged = max(merged + 1, math.ceil(len(points) / room))
    pitch = min(_WIDEST, max(1, room // max(1, len(bars))))
    thick = pitch - 1 if pitch > 1 else 1
    per_tick = _HEIGHT // ticks
    lines = []
    for row in range(per_tick * ticks, 0, -1):
        is_tick = row % per_tick == 0
        line = Text(f"{labels[row // per_tick] if is_tick else '':>{margin}} ", QUIET)
        line.append("┤" if is_tick else "│", QUIET)
        cells = (_cell(one.count, tick / per_tick, row) * thick + " " * (pitch - thick) for one in bars)
        line.append("".join(cells).rstrip(), ACCENT)
        lines.append(line)
    axis, below = _time_axis(bars, pitch, room, tz)
    lines.append(Text(f"{labels[0]:>{margin}} └{axis}", QUIET))
    lines.append(Text(f"{'':>{margin}}  {below}", QUIET))
    return lines, merged


def _scale(counts: Sequence[float]) -> tuple[float, int]:
    """The distance of ticks, and how many it takes: as little above the top as round numbers allow."""
    top = max(counts, default=0)
    if top <= 0:
        return 1, 1
    power = 10.0 ** (math.floor(math.log10(top)) - 1)
    candidates = [factor * power * scale for scale in (1, 10) for factor in _FACTORS]
    if all(count == int(count) for count in counts):
        candidates = [tick for tick in candidates if tick >= 1 and tick == int(tick)]
    ticks = [(tick, math.ceil(top / tick - 1e-9)) for tick in candidates]
    fitting = [(tick, times) for tick, times in ticks if times <= _MOST_TICKS]
    return min(fitting, key=lambda one: (one[1] < _FEWEST_TICKS, one[0] * one[1], one[1]))


def _cell(count: float, row_height: float, row: int) -> str:
    """The part of a bar in a row, to an eighth; a value other than 0 is never invisible."""
    eighths = round((count / row_height - (row - 1)) * 8)
    return _BLOCKS[max(row == 1 and count > 0, min(8, eighths))]


def _time_axis(bars: Sequence[Point], pitch: int, room: int, tz: tzinfo) -> tuple[str, str]:
    width = pitch * len(bars)
    axis, below = ["─"] * width, [" "] * (width + 12)
    if not bars:
        return "", ""
    local = [one.start.astimezone(tz) for one in bars]
    # The first step, and the last, may be cut off.
    step = max((after - before).total_seconds() for before, after in pairwise(local)) if len(local) > 1 else DAY
    form = "%H:%M:%S" if step < MINUTE else "%H:%M" if step < DAY else "%b %d" if step < 28 * DAY else "%Y-%m"
    length = len(local[0].strftime(form))
    fitting = (one for one in (*_SPACINGS, *_LONG_SPACINGS) if one >= step and one / step * pitch >= length + 2)
    spacing = next(fitting, math.inf)
    round_ones = [place for place, when in enumerate(local) if _is_round(when, spacing, local[0])]
    # No step begins at a round time where the zone is half an hour off: then every step may get a label.
    free = 0
    for place in round_ones or range(len(local)):
        at = place * pitch + (pitch - 1) // 2
        begin = max(0, at - length // 2)
        if begin < free or begin + length > room + 1:
            continue
        label = local[place].strftime(form)
        axis[at] = "┬"
        below[begin : begin + len(label)] = label
        free = begin + len(label) + 2
    return "".join(axis), "".join(below).rstrip()


def _is_round(when: datetime, spacing: float, first: datetime) -> bool:
    """Whether a moment is a multiple of the spacing: of the day up to twelve hours, from the first day on beyond."""
    if spacing >= DAY:
        return math.isinf(spacing) is False and (when.date() - first.date()).days % (spacing // DAY) == 0
    return (when.hour * HOUR + when.minute * MINUTE + when.second) % spacing == 0
