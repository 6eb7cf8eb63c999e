"""The results in the terminal, and as docs/benchmarks.md with its figures, below the cost of a month."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

from benchmarks import cost_page
from benchmarks.designs import DESIGNS
from benchmarks.goals import NOT_MET
from benchmarks.tables import PAGED, TITLES, Report, Row, paged_tables, tables

_NOTES: Final = Path(__file__).with_name("notes.md")


def terminal(report: Report) -> str:
    return "\n\n".join(_section(title, rows) for title, rows in tables(report).items())


def write(report: Report, folder: Path) -> None:
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    cost = report["cost"]
    units = {TITLES[name]: row["write_units"] for name, row in cost["hot"].items()}
    errors = {TITLES[name]: row["error_percent"] for name, row in cost["redelivered"].items()}
    figures = {
        "cost": _bars("Write units per event, hot workload", units, ""),
        "error": _bars("Error when a tenth of the batches is redelivered", errors, "%"),
    }
    for name, svg in figures.items():
        (folder / "figures" / f"benchmark-{name}.svg").write_text(svg)
    paged = paged_tables(report)
    sections = {title: rows for title, rows in tables(report).items() if title not in {"Goals", *paged}}
    machine = ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    sizes = ", ".join(f"{name} {value}" for name, value in report["sizes"].items())
    sources = "; ".join(f"{design.title}: {design.source}" for design in DESIGNS)
    parts = [
        _goals(report),
        *(f"![{name}](figures/benchmark-{name}.svg)" for name in figures),
        *(_section(title, rows) for title, rows in sections.items()),
        "## Groups in pages",
        *(_section(title.removeprefix(PAGED), rows, level=3) for title, rows in paged.items()),
        _NOTES.read_text().strip(),
        _filled(f"Measured on: {machine}. It took {report['seconds']:.0f} s. Sizes: {sizes}."),
        _filled(f"Sources of the designs: {sources}."),
    ]
    (folder / "benchmarks.md").write_text(cost_page.text() + "\n\n".join(parts) + "\n")


def _goals(report: Report) -> str:
    goals: dict[str, Any] = report["goals"]
    missed = {name: goal for name, goal in goals.items() if not goal["met"]}
    rows: list[Row] = [("not met", "value", "goal", "why")]
    rows += [(name, goal["value"], goal["goal"], NOT_MET.get(name, "no known reason")) for name, goal in missed.items()]
    before: list[Row] = [("lately", "before", "value", "goal")]
    before += [(name, goal["before"], goal["value"], goal["goal"]) for name, goal in goals.items() if goal["before"]]
    met = f"{len(goals) - len(missed)} of {len(goals)} goals of `benchmarks/goals.py` are met."
    return f"{cost_page.MEASURED}{met}\n\n{_table(rows)}\n\n{_table(before)}"


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _section(title: str, rows: list[Row], level: int = 2) -> str:
    return f"{'#' * level} {title[:1].upper()}{title[1:]}\n\n{_table(rows)}"


def _table(rows: list[Row]) -> str:
    head, *body = [list(map(_text, row)) for row in rows]
    return cost_page.table(head, body)


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _bars(title: str, values: Mapping[str, float], unit: str) -> str:
    """Return a small SVG plot, without a plotting library."""
    most = max(values.values(), default=0.0) or 1.0
    rows = [f'<text x="10" y="22" font-size="15" font-weight="bold">{escape(title)}</text>']
    for index, (label, value) in enumerate(values.items()):
        y, length = 40 + 24 * index, 380 * value / most
        rows.append(
            f'<text x="230" y="{y + 12}" text-anchor="end">{escape(label)}</text>'
            f'<rect x="240" y="{y}" width="{length:.1f}" height="16" fill="#0b6e99"/>'
            f'<text x="{246 + length:.1f}" y="{y + 12}">{value:.4g} {escape(unit)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {50 + 24 * len(values)}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title)}"><rect width="100%" height="100%" fill="white"/>'
        f"{''.join(rows)}</svg>\n"
    )
