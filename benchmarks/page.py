"""The results in the terminal, and as docs/benchmarks.md with its figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.designs import DESIGNS
from benchmarks.figures import bars, lines
from benchmarks.goals import NOT_MET
from benchmarks.tables import PACKED, PAGED, TITLES, Report, Row, packed_tables, paged_tables, tables

_NOTES: Final = Path(__file__).with_name("notes.md")
_MONTHLY_INTERVAL: Final = 5
"""Seconds between flushes, in the figure of a month."""


def terminal(report: Report) -> str:
    parts = []
    for title, rows in tables(report).items():
        texts = [[_text(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        laid_out = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in texts]
        parts.append("\n".join([f"\n{title}", "-" * len(title), *laid_out]))
    return "\n".join(parts)


def write(report: Report, folder: Path) -> None:
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for name, svg in _figures(report).items():
        (folder / "figures" / f"benchmark-{name}.svg").write_text(svg)
    packed, paged = packed_tables(report), paged_tables(report)
    sections = [_section(title, rows) for title, rows in tables(report).items() if title not in packed | paged]
    missed = [name for name, goal in report["goals"].items() if not goal["met"]]
    machine = [f"- {name}: {value}" for name, value in report["machine"].items()]
    parts = [
        "# Benchmarks",
        "Written by `make bench`: every number comes from that run.",
        *map(_picture, ("cost", "error")),
        "[How it is measured](#how-it-is-measured) and [on what machine](#machine).",
        sections[0],
        "### Goals not met",
        *([f"**{name}**: {NOT_MET.get(name, 'no known reason.')}" for name in missed] or ["None."]),
        *sections[1:],
        "## Packed events",
        *map(_picture, ("packed", "months")),
        *(_section(title.removeprefix(PACKED), rows, level=3) for title, rows in packed.items()),
        "## Groups in pages",
        _picture("pages"),
        *(_section(title.removeprefix(PAGED), rows, level=3) for title, rows in paged.items()),
        "## Growth and scale",
        *map(_picture, ("growth", "rate", "lag")),
        _NOTES.read_text().strip(),
        "## Machine",
        "\n".join([*machine, f"- took: {report['seconds']:.0f} s"]),
        f"Sizes: {', '.join(f'{name} {value}' for name, value in report['sizes'].items())}.",
        "## Sources of the designs",
        "\n".join(f"- {design.title}: {design.source}" for design in DESIGNS),
    ]
    (folder / "benchmarks.md").write_text("\n\n".join(parts) + "\n")


def _section(title: str, rows: list[Row], level: int = 2) -> str:
    head, *body = [f"| {' | '.join(_text(cell) for cell in row)} |" for row in rows]
    heading = f"{'#' * level} {title[:1].upper()}{title[1:]}"
    return "\n".join([heading, "", head, "|" + "---|" * len(rows[0]), *body])


def _picture(name: str) -> str:
    return f"![{name}](figures/benchmark-{name}.svg)"


def _figures(report: Report) -> dict[str, str]:
    units = {TITLES[name]: each["write_units"] for name, each in report["cost"]["hot"].items()}
    errors = {TITLES[name]: each["error_percent"] for name, each in report["cost"]["redelivered"].items()}
    rates = {float(rate.removeprefix("rate_")): each for rate, each in report["scale"]["groups_1"].items()}
    batches = {int(batch.removesuffix("_records")): each for batch, each in report["cpu"].items()}
    steps = [name for name in batches[1000] if name == "decode" or name.endswith(".handler")]
    growth = {name: [(batch, each[name] * batch / 1e3) for batch, each in batches.items()] for name in steps}

    def by_rate(key: str, label: str) -> str:
        series = {title: [(rate, each[name][key]) for rate, each in rates.items()] for name, title in TITLES.items()}
        return lines(f"One hot counter, simulated: {label}", "events/s", label, series)

    sizes = {
        name: [(float(size), each["units"]) for size, each in found.items() if size.isdecimal()]
        for name, found in report["packing"]["chunks"].items()
    }
    for name, each in (("an item per event", 1.0), ("transaction per event", 4.0)):
        sizes[name] = [(size, each) for size, _ in sizes["hot"]]
    month = f"A month's bill, flushed every {_MONTHLY_INTERVAL} s"
    return {
        "pages": _by_groups(report["page_growth"]),
        "packed": lines("Units to accept an event", "events per chunk", "units", sizes),
        "months": lines(month, "events/s", "dollars", _monthly(report["flushing"])),
        "cost": bars("Write units per event, hot workload", units, ""),
        "error": bars("Error when a tenth of the batches is redelivered", errors, "%"),
        "rate": by_rate("events_per_second", "counted events/s"),
        "lag": by_rate("lag_seconds", "lag, s"),
        "growth": lines("CPU time of a batch", "records", "ms", growth),
    }


def _by_groups(found: Mapping[str, Any]) -> str:
    named = {
        "units per event, pages": "pages",
        "units per event, items": "items",
        "units per read": "page_known",
        "bytes per group": "bytes_per_group",
        "requests per listing": "listing_requests",
    }
    series = {name: [(float(size), each[key]) for size, each in found.items()] for name, key in named.items()}
    return lines("Groups in pages, 6,400 events a batch", "groups", "units, bytes, requests", series)


def _monthly(found: Mapping[str, Any]) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = {}
    for rate, intervals in found.items():
        each = intervals.get(str(_MONTHLY_INTERVAL), {"dynamodb": {}, "whole": {}})
        dynamodb = {f"DynamoDB, {name}": dollars for name, dollars in each["dynamodb"].items()}
        for name, dollars in (dynamodb | each["whole"]).items():
            # A name that fits next to the figure.
            short = name.replace("EventIngest, packed, ", "packed, ").replace("in a function behind", "behind")
            series.setdefault(short, []).append((float(rate), dollars))
    return series


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
