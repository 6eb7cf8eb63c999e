"""The results as tables: in the terminal, and as docs/benchmarks.md with its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.designs import DESIGNS
from benchmarks.figures import bars, lines
from benchmarks.goals import NOT_MET
from benchmarks.packed_tables import PACKED, packed_figures, packed_tables
from benchmarks.partition_tables import partition_tables

_NOTES: Final = Path(__file__).with_name("notes.md")
_TITLES: Final = {design.name: design.title for design in DESIGNS}
_LOG: Final = "log_three_aggregates_"
_Row = Sequence[Any]


def tables(report: Mapping[str, Any]) -> dict[str, list[_Row]]:
    """Every table by its heading: rows of which the first names the columns."""
    found: dict[str, list[_Row]] = {"Goals": [("name", "value", "goal", "met")]}
    found["Goals"] += [(name, goal["value"], goal["goal"], goal["met"]) for name, goal in report["goals"].items()]
    cost = report["cost"]
    for workload, title in (("hot", "Hot workload"), ("long_tail", "Long tail"), ("log", "Real log, views per URL")):
        if workload in cost:
            designs = {_TITLES[name]: {**each, **cost["redelivered"][name]} for name, each in cost[workload].items()}
            found[title] = _table("design", designs, _COST)
    if "log_three_aggregates_1000" in cost:
        logs = [
            (each.removeprefix(_LOG).replace("_", ", "), cost[each]["write_units"], cost[each]["read_units"])
            for each in cost
            if each.startswith(_LOG)
        ]
        found["Real log, three aggregates"] = [("records per batch", "write units per event", "read units"), *logs]
    titles = {"three_adds": "three ADDs and a query", "accept_and_watermark": "this"}
    rows = {titles[name]: each for name, each in report["leaderboard"].items() if name in titles}
    found["Leaderboard"] = _table("design", rows, {**_PER_EVENT, "error %": "error_percent"})
    found["Windows: a day at minute precision"] = list(_nested("engine", report["windows"], _WINDOWS))
    if "designs" in report["engine"]:
        found["DynamoDB Local and the rule"] = [
            ("design", "write units: engine", "rule", "read units: engine", "rule", "calls: engine", "rule", "exact"),
            *((_TITLES[name], *each.values()) for name, each in report["engine"]["designs"].items()),
        ]
        modelled = [tuple(row.values()) for row in report["engine"]["model"]]
        found["The model and DynamoDB Local"] = [("groups", "batch", "model: write units", "measured"), *modelled]
    found |= packed_tables(report)
    found |= partition_tables(report)
    batches = report["cpu"]
    steps = dict.fromkeys(step for each in batches.values() for step in each)
    found["CPU, microseconds per record"] = [
        ("step", *(batch.replace("_", " ") for batch in batches)),
        *((step, *(each.get(step) for each in batches.values())) for step in steps),
    ]
    found["One big batch"] = [tuple(report["memory"]), tuple(report["memory"].values())]
    found["Cold start"] = _table("process", report["cold_start"], _SECONDS)
    sizes = report["asset"]
    found["Asset"] = [("part", "bytes"), *sizes["parts"].items(), ("total", sizes["total_bytes"])]
    apps = {name: {**each, "total": sum(each["resources"].values())} for name, each in report["synth"].items()}
    found["Synthesis"] = _table("app", apps, {**_SECONDS, "resources": "total"})
    figures = ("events_per_second", "keeps_up", "throttles_per_event", "conflicts_per_event", "lag_seconds")
    scale = {figure.replace("_", " "): figure for figure in (*figures, "dollars_per_million")}
    for name, each in report["scale"].items():
        groups = int(name.removeprefix("groups_"))
        rates = {int(rate.removeprefix("rate_")): designs for rate, designs in each.items()}
        found[f"Simulation, {groups:,} group{'s' if groups > 1 else ''}"] = list(_nested("events/s", rates, scale))
    counters = [tuple(row.values()) for row in report["scaled_counter"]]
    found["Simulation: units of a counter's update"] = [
        ("groups", "events/s", "fed by", "shards", "units of an update", "write units per event"),
        *counters,
    ]
    return found


def terminal(report: Mapping[str, Any]) -> str:
    parts = []
    for title, rows in tables(report).items():
        texts = [[_text(cell) for cell in row] for row in rows]
        widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))]
        laid_out = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in texts]
        parts.append("\n".join([f"\n{title}", "-" * len(title), *(line.rstrip() for line in laid_out)]))
    return "\n".join(parts)


def write(report: Mapping[str, Any], folder: Path) -> None:
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for name, svg in _figures(report).items():
        (folder / "figures" / f"benchmark-{name}.svg").write_text(svg)
    packed = packed_tables(report)
    sections = [_section(title, rows) for title, rows in tables(report).items() if title not in packed]
    parts = [
        "# Benchmarks",
        "Written by `make bench`: every number comes from that run.",
        *map(_picture, ("cost", "error")),
        "[How it is measured](#how-it-is-measured) and [on what machine](#machine).",
        sections[0],
        _not_met(report),
        *sections[1:],
        "## Packed events",
        *map(_picture, ("packed", "months")),
        *(_section(_capital(title.removeprefix(PACKED)), rows, level=3) for title, rows in packed.items()),
        "## Growth and scale",
        *map(_picture, ("growth", "rate", "lag")),
        _NOTES.read_text().strip(),
        _machine(report),
        "## Sources of the designs",
        "\n".join(f"- {design.title}: {design.source}" for design in DESIGNS),
    ]
    (folder / "benchmarks.md").write_text("\n\n".join(parts) + "\n")


def _section(title: str, rows: Sequence[_Row], level: int = 2) -> str:
    head, *body = [f"| {' | '.join(_text(cell) for cell in row)} |" for row in rows]
    return "\n".join([f"{'#' * level} {title}", "", head, "|" + "---|" * len(rows[0]), *body])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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
_COST: Final = {
    **_PER_EVENT,
    "error % under redelivery": "error_percent",
    "hot counter, events/s": "counter_events_per_second",
    "aggregation write units": "aggregation_write_units",
}
_WINDOWS: Final = {
    "write units per event": "write_units",
    "read units per query": "read_units",
    "calls per query": "read_calls",
    "$ per million queries": "dollars_per_million_reads",
    "exact": "exact",
    "looking back": "exact_looking_back",
}
_SECONDS: Final = {"CPU seconds": "cpu_seconds", "wall seconds": "wall_seconds"}


def _table(kind: str, found: Mapping[str, Any], columns: Mapping[str, str]) -> list[_Row]:
    return [(kind, *columns), *((name, *_cells(each, columns)) for name, each in found.items())]


def _cells(figures: Mapping[str, Any], columns: Mapping[str, str]) -> list[Any]:
    return [figures[key] for key in columns.values()]


def _nested(kind: str, found: Mapping[Any, Any], columns: Mapping[str, str]) -> Iterator[_Row]:
    yield (kind, "design", *columns)
    for outer, designs in found.items():
        for name, each in designs.items():
            yield (outer, name.replace("_", " "), *_cells(each, columns))


def _figures(report: Mapping[str, Any]) -> dict[str, str]:
    units = {_TITLES[name]: each["write_units"] for name, each in report["cost"]["hot"].items()}
    errors = {_TITLES[name]: each["error_percent"] for name, each in report["cost"]["redelivered"].items()}
    rates = {float(rate.removeprefix("rate_")): each for rate, each in report["scale"]["groups_1"].items()}
    batches = {int(batch.removesuffix("_records")): each for batch, each in report["cpu"].items()}
    steps = [name for name in batches[1000] if name == "decode" or name.endswith(".handler")]
    growth = {name: [(batch, each[name] * batch / 1e3) for batch, each in batches.items()] for name in steps}

    def by_rate(key: str, label: str) -> str:
        series = {title: [(rate, each[name][key]) for rate, each in rates.items()] for name, title in _TITLES.items()}
        return lines(f"One hot counter, simulated: {label}", "events/s", label, series)

    return {
        **packed_figures(report),
        "cost": bars("Write units per event, hot workload", units, ""),
        "error": bars("Error when a tenth of the batches is redelivered", errors, "%"),
        "rate": by_rate("events_per_second", "counted events/s"),
        "lag": by_rate("lag_seconds", "lag, s"),
        "growth": lines("CPU time of a batch", "records", "ms", growth),
    }


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
