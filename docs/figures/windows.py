"""Makes the picture and the table of docs/windows.md, from the code that they show.

Run: ``PYTHONPATH=lambdas python docs/figures/windows.py``
With ``--check`` it changes nothing, and fails where it would.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Final

from dynamodb_counters._declarations import Event, Window
from dynamodb_counters._timeline.intervals import Interval, Span, plan_queries
from dynamodb_counters._timeline.tiers import DAYS, HOURS
from dynamodb_counters._timeline.times import utc

PAGE: Final = Path(__file__).parents[1] / "windows.md"
PICTURE: Final = Path(__file__).with_name("windows.svg")
_BEGIN: Final = "<!-- made by docs/figures/windows.py: begin -->"
_END: Final = "<!-- made by docs/figures/windows.py: end -->"

_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "year": 365 * 86_400}
_PRECISIONS: Final = ("1 second", "1 minute", "1 hour", "1 day")
_LONGEST: Final = ("1 hour", "24 hours", "7 days", "30 days", "1 year")

_MINUTE: Final = "%Y-%m-%d %H:%M"
_WIDTH: Final = 960
_LEFT: Final = 20
_INNER: Final = _WIDTH - 2 * _LEFT
_TOTAL, _SLOT, _NONE, _INK = "#1d4e89", "#5fa8d3", "#eef2f5", "#1f2933"


def table() -> str:
    """Updates, write units, Queries, items and read units by precision and longest window."""
    rows = [
        "| precision | longest | tiers | updates a group and batch | write units | Queries | items | read units |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for precision, longest in product(_PRECISIONS, _LONGEST):
        if _length(longest) >= _length(precision):
            cost = _jobs(precision=_length(precision), longest=_length(longest)).cost_estimate
            figures = (cost.updates, cost.write_units, cost.queries, cost.items_read, f"{cost.read_units:g}")
            rows.append(f"| {precision} | {longest} | {' + '.join(cost.tiers)} | {' | '.join(map(str, figures))} |")
    return "\n".join(rows)


def _length(text: str) -> timedelta:
    number, unit = text.split()
    return timedelta(seconds=int(number) * _SECONDS[unit.removesuffix("s")])


def _jobs(**lengths: timedelta) -> Window:
    return Window("jobs", Event("job", pk="JOB#{id}", sk="JOB"), pk="CUSTOMER#{customer}", time="at", **lengths)


def picture() -> str:
    """An SVG of how a window is put together."""
    interval = Interval.ending_at(datetime(2026, 11, 20, 10, 30, tzinfo=UTC).timestamp(), timedelta(days=3))
    spans = plan_queries(_jobs(longest=_length("30 days"))._kept_tiers, interval)
    head, days, tail = sorted(spans, key=lambda span: span.interval.start)
    shapes = [
        _text(_LEFT, 28, "The last 3 days as of 10:30, to the minute: three Queries at once", 17, weight="bold"),
        _text(_LEFT, 50, f"{utc(interval.start):{_MINUTE}} up to {utc(interval.end):{_MINUTE}} (excluded), UTC", 13),
        *_days(days, 86),
        *_hour(head, _LEFT, 236, "head: minute slots of one hour item"),
        *_hour(tail, _LEFT + _INNER // 2 + 20, 236, "tail: minute slots of one hour item"),
        *_legend(322),
    ]
    body = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} 346" role="img" '
        'font-family="Helvetica, Arial, sans-serif">\n'
        "<title>A window of three days: whole days by their totals, hours and minutes at both ends by slots</title>\n"
        f'<rect width="{_WIDTH}" height="346" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _days(span: Span, top: int) -> list[str]:
    first, last = span.buckets
    width = _INNER / (last - first + 1)
    shapes = [_text(_LEFT, top, "day items: a total and 24 hour slots each", 13, weight="bold")]
    for index, bucket in enumerate(range(first, last + 1)):
        left = _LEFT + index * width
        whole = span.interval.start <= DAYS.start(bucket) and DAYS.end(bucket) <= span.interval.end
        shapes.append(_box(left + 2, top + 12, width - 4, 26, _TOTAL if whole else _NONE))
        ink = "#ffffff" if whole else "#6b7785"
        shapes += [
            _text(left + width / 2, top + 30, f"{DAYS.text(bucket)}  total", 12, fill=ink, anchor="middle"),
            *_slots(span, bucket, left + 2, top + 42, width=width - 4, used=not whole),
            _text(left + 2, top + 82, "h00", 11),
            _text(left + width - 24, top + 82, "h23", 11),
        ]
    return [*shapes, _text(_LEFT, top + 106, "whole days: totals; days that are cut: slots", 12)]


def _hour(span: Span, left: float, top: int, label: str) -> list[str]:
    [bucket] = {*span.buckets}
    width = _INNER / 2 - 20
    return [
        _text(left, top, f"{HOURS.text(bucket)}  {label}", 13, weight="bold"),
        *_slots(span, bucket, left, top + 10, width=width, used=True),
        _text(left, top + 50, "m00", 11),
        _text(left + width - 24, top + 50, "m59", 11),
    ]


def _slots(span: Span, bucket: int, left: float, top: float, *, width: float, used: bool) -> list[str]:
    tier = span.tier
    step = width / len(tier.slots)
    shapes = []
    for index in range(len(tier.slots)):
        moment = tier.start(bucket) + index * tier.slot_seconds
        inside = used and span.interval.start <= moment < span.interval.end
        shapes.append(_box(left + index * step, top, step - 1, 24, _SLOT if inside else _NONE))
    return shapes


def _legend(top: int) -> list[str]:
    shapes, left = [], float(_LEFT)
    for fill, label in ((_TOTAL, "total, counted"), (_SLOT, "slot, counted"), (_NONE, "in the item, not counted")):
        shapes += [_box(left, top, 14, 14, fill), _text(left + 20, top + 12, label, 12)]
        left += 160
    return shapes


def _box(left: float, top: float, width: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" '
        'stroke="#b8c4ce" stroke-width="0.5"/>'
    )


def _text(
    left: float, top: float, text: str, size: int, *, weight: str = "normal", fill: str = _INK, anchor: str = "start"
) -> str:
    style = f'font-size="{size}" font-weight="{weight}" fill="{fill}" text-anchor="{anchor}"'
    return f'<text x="{left:.1f}" y="{top:.1f}" {style}>{text}</text>'


def main() -> None:
    """Write both, or check them."""
    before, rest = PAGE.read_text(encoding="utf-8").split(_BEGIN)
    made = {PAGE: f"{before}{_BEGIN}\n\n{table()}\n\n{_END}{rest.split(_END)[1]}", PICTURE: picture()}
    stale = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        raise SystemExit(f"out of date: {', '.join(map(str, stale))}" if stale else 0)
    for path in stale:
        path.write_text(made[path], encoding="utf-8")


if __name__ == "__main__":
    main()
