"""Every table of the page, from the report, which has more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from benchmarks.designs import DESIGNS

Row: TypeAlias = Sequence[Any]
Tables: TypeAlias = dict[str, list[Row]]
Report: TypeAlias = Mapping[str, Any]

PAGED: Final = "Pages: "
"""Before headings that do not stand below that of pages."""

TITLES: Final = {design.name: design.title for design in DESIGNS}
_UNITS: Final = {"write units": "write_units", "read units": "read_units"}
_PER_EVENT: Final = {**_UNITS, "calls": "calls", "$ per million": "dollars_per_million"}
_OTHER_WORKLOADS: Final = {"long_tail": "long tail", "log": "views per URL of a real log"}
_COST: Final = {
    **_PER_EVENT,
    "error % under redelivery": "error_percent",
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
_QUESTIONS: Final = {
    "read units, first time": "first_units",
    "calls": "first_calls",
    "read units, again": "units",
    "calls, again": "calls",
}
_PARTITIONS: Final = {"write units per update": "units", "by the kernel alone": "kernel", "watermarks": "watermarks"}
_SECONDS: Final = {"CPU seconds": "cpu_seconds", "wall seconds": "wall_seconds"}


def tables(report: Report) -> Tables:
    """Every table by its heading: rows of which the first names the columns."""
    return {
        "Goals": _table(("name",), report["goals"], {name: name for name in ("value", "goal", "met", "before")}),
        **_of_cost(report),
        **paged_tables(report),
        **_of_times(report),
    }


def _of_cost(report: Report) -> Tables:
    cost, sections = report["cost"], {}
    hot = {TITLES[name]: {**row, **cost["redelivered"][name]} for name, row in cost["hot"].items()}
    sections["Hot workload"] = _table(("design",), hot, _COST)
    others = {title: cost[name] for name, title in _OTHER_WORKLOADS.items() if name in cost}
    sections["Other workloads"] = [
        ("design", *(f"{title}: {column}" for title in others for column in _PER_EVENT)),
        *(
            (TITLES[name], *(costs[name][key] for costs in others.values() for key in _PER_EVENT.values()))
            for name in cost["long_tail"]
        ),
    ]
    flushes = {size: size for sizes in report["packing"].values() for size in sizes}
    sections["Units to accept packed events, by events of a flush"] = _table(("event",), report["packing"], flushes)
    windows = {engine: _spaced(designs) for engine, designs in report["windows"].items()}
    sections["Windows: a day at minute precision"] = _table(("engine", "design"), windows, _WINDOWS)
    sections["Reads"] = _table(("question",), report["reads"], _QUESTIONS)
    sections["Ranks"] = _table(("change or question",), report["ranks"], {"units": "units", "calls": "calls"})
    sections["A hot item of several partitions"] = _table(("partitions",), report["partitions"], _PARTITIONS)
    return sections


def paged_tables(report: Report) -> Tables:
    pages = report["pages"]
    sections: Tables = {}
    if pages:
        log = {name: {**row, **pages["cpu"].get(name, {})} for name, row in pages["log"].items()}
        columns = {"units per event": "units", "of which counting": "counting", "requests to count": "calls"}
        sections[f"{PAGED}real log, three aggregates"] = _table(
            ("counting by",), log, columns | {"CPU to count, microseconds": "microseconds"}
        )
        sections[f"{PAGED}distinct members of the log"] = _table(
            ("members, kept as",), pages["distinct"], {"units per event": "units", "requests to count": "calls"}
        )
        sections[f"{PAGED}reads"] = _table(
            ("question",), pages["reads"], {"read units": "units", "requests": "calls", "pages": "pages"}
        )
    return sections


def _of_times(report: Report) -> Tables:
    return {
        "CPU over HTTPS": _across("step", report["https"]),
        "Cold start": _table(("process",), report["cold_start"], _SECONDS),
    }


def _spaced(designs: Report) -> dict[str, Any]:
    return {name.replace("_", " "): figures for name, figures in designs.items()}


def _table(kinds: Sequence[str], entries: Mapping[Any, Any], columns: Mapping[str, str]) -> list[Row]:
    """Return a row per entry; an entry per kind is nested in that of the kind before it."""
    return [(*kinds, *columns), *_rows(len(kinds), entries, columns)]


def _rows(depth: int, entries: Mapping[Any, Any], columns: Mapping[str, str]) -> Iterator[Row]:
    for name, entry in entries.items():
        if depth > 1:
            yield from ((name, *row) for row in _rows(depth - 1, entry, columns))
        else:
            yield (name, *(entry.get(key) for key in columns.values()))


def _across(kind: str, entries: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Return a column per entry, and a row for each name that an entry has."""
    names = dict.fromkeys(name for entry in entries.values() for name in entry)
    return [(kind, *entries), *((name, *(entry.get(name) for entry in entries.values())) for name in names)]
