"""The results as tables: in the terminal, and as docs/benchmarks.md with its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.designs import DESIGNS
from benchmarks.figures import bars, lines
from benchmarks.notes import NOT_MET, NOTES

_TITLES: Final = {design.name: design.title for design in DESIGNS}
_Row = Sequence[Any]


def tables(report: Mapping[str, Any]) -> Iterator[tuple[str, list[_Row]]]:
    """Every table: a heading, and rows of which the first names the columns."""
    yield "Goals", [("name", "value", "goal", "met"), *_goals(report)]
    cost = report["cost"]
    for workload, title in (("hot", "Hot workload"), ("long_tail", "Long tail"), ("log", "Real log, views per URL")):
        if workload in cost:
            yield title, list(_costs(cost[workload], cost["redelivered"]))
    if "log_three_aggregates_1000" in cost:
        logs = [(batch, cost[f"log_three_aggregates_{batch}"]["write_units"]) for batch in (1_000, 10_000)]
        yield "Real log, three aggregates", [("batch", "write units per event"), *logs]
    columns = {**_PER_EVENT, "error %": "error_percent"}
    designs = {"three_adds": "three ADDs and a query", "accept_and_watermark": "this"}
    rows = [(title, *_cells(report["leaderboard"][name], columns)) for name, title in designs.items()]
    yield "Leaderboard", [("design", *columns), *rows]
    yield "Windows: a day at minute precision", list(_windows(report["windows"]))
    if "designs" in report["engine"]:
        yield "DynamoDB Local beside the rule", list(_engine(report["engine"]["designs"]))
        yield (
            "The model beside DynamoDB Local",
            [
                ("groups", "batch", "model: write units", "measured"),
                *[tuple(row.values()) for row in report["engine"]["model"]],
            ],
        )
    yield "CPU, microseconds per record", list(_cpu(report["cpu"]))
    yield "One big batch", [tuple(report["memory"]), tuple(report["memory"].values())]
    yield (
        "Cold start",
        [
            ("process", "CPU seconds", "wall seconds"),
            *[(name, each["cpu_seconds"], each["wall_seconds"]) for name, each in report["cold_start"].items()],
        ],
    )
    yield "Asset", [("part", "bytes"), *report["asset"]["parts"].items(), ("total", report["asset"]["total_bytes"])]
    if "synth" in report:
        yield (
            "Synthesis",
            [
                ("app", "CPU seconds", "wall seconds", "resources"),
                *[
                    (name, each["cpu_seconds"], each["wall_seconds"], sum(each["resources"].values()))
                    for name, each in report["synth"].items()
                ],
            ],
        )
    for groups, rates in report["scale"].items():
        yield (
            f"Simulation, {int(groups.removeprefix('groups_')):,} group{'' if groups == 'groups_1' else 's'}",
            list(_scale(rates)),
        )


def terminal(report: Mapping[str, Any]) -> str:
    """The tables as text for a terminal."""
    parts = []
    for title, rows in tables(report):
        texts = [[_text(cell) for cell in row] for row in rows]
        widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))]
        laid_out = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in texts]
        parts.append("\n".join([f"\n{title}", "-" * len(title), *(line.rstrip() for line in laid_out)]))
    return "\n".join(parts)


def write(report: Mapping[str, Any], folder: Path) -> None:
    """Write the page and its figures into a folder of documentation."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for name, svg in _figures(report).items():
        (folder / "figures" / f"benchmark-{name}.svg").write_text(svg)
    parts = ["# Benchmarks", "Written by `make bench`: every number comes from that run.", _picture("cost")]
    parts += [_picture("error"), "[How it is measured](#how-it-is-measured) and [on what machine](#machine)."]
    for title, rows in tables(report):
        parts.append(_section(title, rows))
        if title == "Goals":
            parts.append(_not_met(report))
    parts += ["## Growth and scale", *map(_picture, ("growth", "rate", "lag"))]
    parts += [NOTES.strip(), _machine(report), "## Sources of the designs"]
    parts.append("\n".join(f"- {design.title}: {design.source}" for design in DESIGNS))
    (folder / "benchmarks.md").write_text("\n\n".join(parts) + "\n")


def _section(title: str, rows: Sequence[_Row]) -> str:
    head, *body = [f"| {' | '.join(_text(cell) for cell in row)} |" for row in rows]
    return "\n".join([f"## {title}", "", head, "|" + "---|" * len(rows[0]), *body])


def _picture(name: str) -> str:
    return f"![{name}](figures/benchmark-{name}.svg)"


def _not_met(report: Mapping[str, Any]) -> str:
    missed = [name for name, goal in report["goals"].items() if not goal["met"]]
    reasons = [f"**{name}**: {NOT_MET.get(name, 'no known reason.')}" for name in missed]
    return "\n\n".join(["### Goals not met", *(reasons or ["None."])])


def _machine(report: Mapping[str, Any]) -> str:
    machine = "\n".join(f"- {name}: {value}" for name, value in report["machine"].items())
    sizes = ", ".join(f"{name} {value}" for name, value in report["sizes"].items())
    return f"## Machine\n\n{machine}\n- took: {report['seconds']:.0f} s\n\nSizes: {sizes}."


_PER_EVENT: Final = {
    "write units": "write_units",
    "read units": "read_units",
    "calls": "calls",
    "$ per million": "dollars_per_million",
}
_WINDOWS: Final = {
    "write units per event": "write_units",
    "read units per query": "read_units",
    "calls per query": "read_calls",
    "$ per million queries": "dollars_per_million_reads",
    "exact": "exact",
    "looking back": "exact_looking_back",
}
_SCALE: Final = (
    "events_per_second",
    "keeps_up",
    "throttles_per_event",
    "conflicts_per_event",
    "lag_seconds",
    "dollars_per_million",
)


def _cells(figures: Mapping[str, Any], columns: Mapping[str, str]) -> list[Any]:
    return [figures[key] for key in columns.values()]


def _goals(report: Mapping[str, Any]) -> list[_Row]:
    return [(name, goal["value"], goal["goal"], goal["met"]) for name, goal in report["goals"].items()]


def _costs(workload: Mapping[str, Any], redelivered: Mapping[str, Any]) -> Iterator[_Row]:
    yield ("design", *_PER_EVENT, "error % under redelivery", "hot counter, events/s", "aggregation write units")
    for name, each in workload.items():
        error = redelivered[name]["error_percent"]
        ceilings = each["counter_events_per_second"], each["aggregation_write_units"]
        yield (_TITLES[name], *_cells(each, _PER_EVENT), error, *ceilings)


def _windows(found: Mapping[str, Any]) -> Iterator[_Row]:
    yield ("engine", "design", *_WINDOWS)
    for engine, designs in found.items():
        for name, each in designs.items():
            yield (engine, name.replace("_", " "), *_cells(each, _WINDOWS))


def _engine(designs: Mapping[str, Any]) -> Iterator[_Row]:
    yield ("design", "write units: engine", "rule", "read units: engine", "rule", "calls: engine", "rule", "exact")
    for name, each in designs.items():
        yield (_TITLES[name], *each.values())


def _cpu(found: Mapping[str, Any]) -> Iterator[_Row]:
    batches = list(found)
    yield ("step", *(batch.replace("_", " ") for batch in batches))
    names = dict.fromkeys(name for each in found.values() for name in each)
    for name in names:
        yield (name, *(found[batch].get(name) for batch in batches))


def _scale(rates: Mapping[str, Any]) -> Iterator[_Row]:
    yield ("events/s", "design", *(key.replace("_", " ") for key in _SCALE))
    for rate, designs in rates.items():
        for name, each in designs.items():
            yield (int(rate.removeprefix("rate_")), name.replace("_", " "), *(each[key] for key in _SCALE))


def _figures(report: Mapping[str, Any]) -> dict[str, str]:
    hot = report["cost"]["hot"]
    found = {
        "cost": bars("Write units per event, hot workload", {_TITLES[n]: e["write_units"] for n, e in hot.items()}, ""),
        "error": bars(
            "Error when a tenth of the batches is redelivered",
            {_TITLES[name]: each["error_percent"] for name, each in report["cost"]["redelivered"].items()},
            "%",
        ),
    }
    rates = report["scale"]["groups_1"]
    for figure, key, label in (("rate", "events_per_second", "counted events/s"), ("lag", "lag_seconds", "lag, s")):
        series = {
            title: [(float(rate.removeprefix("rate_")), each[name][key]) for rate, each in rates.items()]
            for name, title in _TITLES.items()
        }
        found[figure] = lines(f"One hot counter, simulated: {label}", "events/s", label, series)
    series = {
        name: [
            (float(batch.removesuffix("_records")), each[name] * int(batch.removesuffix("_records")) / 1e3)
            for batch, each in report["cpu"].items()
        ]
        for name in report["cpu"]["1000_records"]
        if name == "decode" or name.endswith(".handler")
    }
    found["growth"] = lines("CPU time of a batch", "records", "ms", series)
    return found


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
