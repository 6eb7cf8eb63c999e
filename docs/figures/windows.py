"""Makes the picture and the table of docs/windows.md, from the code that they show.

Run: ``PYTHONPATH=lambdas python docs/figures/windows.py``
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Final

from drawing import INNER, LEFT, box, picture, text, write

from dynamodb_counters._declarations import Event, Window
from dynamodb_counters._tiers import DAYS, HOURS, Interval, Span, plan_queries, read_cost, utc

PAGE: Final = Path(__file__).parents[1] / "windows.md"
_BEGIN: Final = "<!-- made by docs/figures/windows.py: begin -->"
_END: Final = "<!-- made by docs/figures/windows.py: end -->"

_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "year": 365 * 86_400}
_PRECISIONS: Final = ("1 second", "1 minute", "1 hour", "1 day")
_LONGEST: Final = ("1 hour", "24 hours", "7 days", "30 days", "1 year")

_MINUTE: Final = "%Y-%m-%d %H:%M"


def table() -> str:
    """Return updates, Queries, items and read units by precision and longest window, at the worst of many moments."""
    rows = [
        "| precision | longest | tiers | write units a group and batch | Queries | items | read units |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for precision, longest in product(_PRECISIONS, _LONGEST):
        unit, length = _length(precision), _length(longest)
        if length >= unit:
            tiers = _jobs(precision=unit, longest=length)._kept_tiers
            moments = range(_SECONDS["year"], 5 * _SECONDS["year"], 14 * 3600 + 59)
            intervals = (Interval.ending_at(moment, length, unit // timedelta(seconds=1)) for moment in moments)
            spans = max(
                (plan_queries(tiers, each) for each in intervals), key=lambda found: (read_cost(found), _items(found))
            )
            names = " + ".join(tier.name for tier in tiers)
            # Without half a unit that a Query is reckoned to take.
            figures = (len(tiers), len(spans), _items(spans), f"{read_cost(spans) - len(spans) / 2:g}")
            rows.append(f"| {precision} | {longest} | {names} | {' | '.join(map(str, figures))} |")
    return "\n".join(rows)


def _items(spans: list[Span]) -> int:
    return sum(span.buckets[1] - span.buckets[0] + 1 for span in spans)


def _length(text: str) -> timedelta:
    number, unit = text.split()
    return timedelta(seconds=int(number) * _SECONDS[unit.removesuffix("s")])


def _jobs(**lengths: timedelta) -> Window:
    return Window("jobs", Event("job", pk="JOB#{id}", sk="JOB"), pk="CUSTOMER#{customer}", time="at", **lengths)


def window() -> str:
    """Draw how a window is put together."""
    interval = Interval.ending_at(datetime(2026, 11, 20, 10, 30, tzinfo=UTC).timestamp(), timedelta(days=3))
    spans = plan_queries(_jobs(longest=_length("30 days"))._kept_tiers, interval)
    head, days, tail = sorted(spans, key=lambda span: span.interval.start)
    shapes = [
        text(LEFT, 28, "The last 3 days, to the minute: three Queries at once", "b"),
        text(LEFT, 50, f"from {utc(interval.start):{_MINUTE}} to before {utc(interval.end):{_MINUTE}}", "faint"),
        *_days(days, 86),
        *_hour(head, 222, "head: minutes of"),
        *_hour(tail, 310, "tail: minutes of"),
    ]
    for left, kind, label in (
        (LEFT, "good", "total, counted"),
        (160, "table", "slot, counted"),
        (304, "none", "not counted"),
    ):
        shapes += [box(left, 390, 16, 16, kind), text(left + 22, 404, label)]
    return picture(
        "A window of three days: whole days by their totals, hours and minutes at both ends by slots", 420, shapes
    )


def _days(span: Span, top: int) -> list[str]:
    first, last = span.buckets
    width = INNER / (last - first + 1)
    shapes = [text(LEFT, top, "day items: a total, and slots of 24 hours", "b")]
    for index, bucket in enumerate(range(first, last + 1)):
        left = LEFT + index * width
        whole = span.interval.start <= DAYS.start(bucket) and DAYS.end(bucket) <= span.interval.end
        day = DAYS.text(bucket).removeprefix("2026-")
        shapes += [
            box(left, top + 12, width - 6, 30, "good" if whole else "none", day),
            *_slots(span, bucket, left, top + 48, width=width - 6, used=not whole),
        ]
    return [*shapes, text(LEFT, top + 100, "whole days: totals; days that are cut: slots", "faint")]


def _hour(span: Span, top: int, label: str) -> list[str]:
    [bucket] = {*span.buckets}
    words = text(LEFT, top, f"{label} {HOURS.text(bucket)}", "b")
    return [words, *_slots(span, bucket, LEFT, top + 12, width=INNER, used=True)]


def _slots(span: Span, bucket: int, left: float, top: float, *, width: float, used: bool) -> list[str]:
    tier = span.tier
    step = width / len(tier.slots)
    shapes = []
    for index in range(len(tier.slots)):
        moment = tier.start(bucket) + index * tier.slot_seconds
        inside = used and span.interval.start <= moment < span.interval.end
        shapes.append(box(left + index * step, top, step, 30, "table" if inside else "none", corner=0))
    return shapes


if __name__ == "__main__":
    before, rest = PAGE.read_text(encoding="utf-8").split(_BEGIN)
    page = f"{before}{_BEGIN}\n\n{table()}\n\n{_END}{rest.split(_END)[1]}"
    write({PAGE: page, Path(__file__).with_name("windows.svg"): window()})
