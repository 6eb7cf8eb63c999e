"""Says how it went: a report for programs, a summary for people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from demo.comparison import highest, printable
from demo.readback import Rolling
from demo.result import Result

_SHOWN_DIFFERENCES: Final = 20
_SHOWN_URLS: Final = 10


def report(result: Result, differences: Iterable[str]) -> dict[str, Any]:
    """Make the report for programs.

    Parameters
    ----------
    result : Result
        What was found out.
    differences : iterable of str
        What was wrong.

    Returns
    -------
    dict
        To be written as JSON.
    """
    wrong = list(differences)
    return {
        "events_sent": result.blog.sent,
        "distinct_events": result.inputs.blog.site_views,
        "duplicates_rejected": result.duplicates,
        "unparsable_lines": result.inputs.unparsable_lines,
        "views": result.views,
        "site_views": result.site_views,
        "visitors": result.visitors,
        "rolling_24h": _rolling(result.rolling),
        "write_units_per_event": {
            "accept": result.accept_units_per_event,
            "aggregate": result.aggregate_units_per_event,
        },
        "window_read_units": result.window_units,
        "exact": not wrong,
        "differences": wrong,
        "jobs": {
            "events_sent": result.jobs.sent,
            "distinct_events": len(result.inputs.customers.distinct),
            "duplicates_rejected": result.duplicate_jobs,
            "customers": result.jobs_placed,
            "rolling_24h": _rolling(result.jobs_rolling),
        },
        **{finding.name: finding.section() for finding in result.findings},
        "seconds": round(result.seconds, 1),
    }


def summary(result: Result, differences: Iterable[str]) -> str:
    """Make the summary for people.

    Parameters
    ----------
    result : Result
        What was found out.
    differences : iterable of str
        What was wrong.

    Returns
    -------
    str
        Some lines of text.
    """
    wrong, rolling = list(differences), result.rolling
    top = highest(result.views, _SHOWN_URLS)
    others, jobs = len(result.views) - len(top), sorted(result.jobs_rolling.counts.items())
    accept, aggregate = _number(result.accept_units_per_event), _number(result.aggregate_units_per_event)
    lines = [
        "",
        f"{'views':>9} {'last 24 h':>10}  url",
        *(f"{result.views[url]:>9,} {rolling.counts.get(url, 0):>10,}  {printable(url)}" for url in top),
        *([f"{'':>21} … and {others:,} more"] if others else []),
        f"{result.site_views:>9,} {sum(rolling.counts.values()):>10,}  the whole site",
        "",
        f"last 24 h              from {_minute(rolling.start)} up to, not including, {_minute(rolling.end)} UTC",
        f"visitors               {len(result.visitors):,}",
        f"jobs in the last 24 h  {', '.join(f'customer {name}: {n:,}' for name, n in jobs)}",
        f"events sent            {result.blog.sent:,} views, {result.jobs.sent:,} jobs",
        f"duplicates rejected    {result.duplicates:,} views, {result.duplicate_jobs:,} jobs",
        f"lines not understood   {result.inputs.unparsable_lines:,}",
        f"write units            {accept} to accept a view sent, {aggregate} to aggregate a distinct one",
        f"read units             {_number(result.window_units)} a window query",
        *(line for finding in result.findings for line in finding.lines),
        "",
        *(wrong[:_SHOWN_DIFFERENCES]),
        *([f"… and {len(wrong) - _SHOWN_DIFFERENCES:,} more"] if len(wrong) > _SHOWN_DIFFERENCES else []),
        *([result.stalled] if result.stalled else []),
    ]
    verdict = f"NOT EXACT: {len(wrong):,} differences" if wrong else f"EXACT: all {result.checked:,} counts are right"
    return "\n".join([*lines, f"{verdict} ({result.seconds:.0f} s)"])


def _rolling(rolling: Rolling) -> dict[str, Any]:
    return {
        "as_of": rolling.end.isoformat(),
        "from": rolling.start.isoformat(),
        "from_inclusive": True,
        "as_of_inclusive": False,
        "counts": rolling.counts,
    }


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _minute(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M")
