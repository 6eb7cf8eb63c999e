"""The tables and figures of packed events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from benchmarks.figures import lines
from benchmarks.packing import CALL

PACKED: Final = "Packed: "
"""Before headings that do not stand below that of packed events."""

_Rows = list[Sequence[Any]]

_MONTHLY_INTERVAL: Final = 5
"""Seconds between flushes, in the figure of a month."""


def packed_tables(report: Mapping[str, Any]) -> dict[str, _Rows]:
    packing, cpu = report["packing"], report["chunk_cpu"]
    workloads, repeated = packing["chunks"], packing["duplicates"]
    tables: dict[str, _Rows] = {
        f"{PACKED}units to accept an event, by events per chunk": [
            ("events per chunk", *workloads),
            *((size, *(each[size]["units"] for each in workloads.values())) for size in workloads["hot"]),
        ],
        f"{PACKED}units per distinct event, with duplicates": [
            ("duplicates", *repeated),
            *((kind, *(each[kind] for each in repeated.values())) for kind in repeated["hot"]),
        ],
        f"{PACKED}late events": [("what", "units"), *packing["late"].items()],
        f"{PACKED}one event of a bucket that the process does not know": [
            ("events in the bucket", "chunks", "write units", "read units", "units"),
            *((int(events), *each.values()) for events, each in packing["cold"].items()),
        ],
        f"{PACKED}several processes on the same log": [
            ("processes", "how", "write units", "read units", "units", "to one process", "calls that failed"),
            *_writers(report["writers"]),
        ],
        "When not to pack": [
            ("events", "units to accept one", "as an item"),
            ("one per call", workloads["hot"]["1"]["units"], 1.0),
            ("one per second, flushed every second", report["flushing"]["1"]["1"]["accept"], 1.0),
            (f"{CALL} per call, their times scattered over a month", packing["scattered"], 1.0),
            ("late, and its bucket known", packing["late"]["per late event"], 1.0),
            ("one of a bucket of 10,000 not known", packing["cold"]["10000"]["units"], 1.0),
        ],
        f"{PACKED}units and dollars per month": list(_months(report["flushing"])),
        f"{PACKED}CPU, microseconds per event": [
            ("step", *(groups.replace("_", " ") for groups in cpu)),
            *((step, *(each[step] for each in cpu.values())) for step in cpu["few_groups"]),
        ],
    }
    if "packing" in report["engine"]:
        tables[f"{PACKED}DynamoDB Local and the rule"] = [
            ("what", "write units: engine", "rule", "read units: engine", "rule"),
            *((what, *each.values()) for what, each in report["engine"]["packing"].items()),
        ]
    return tables


def _writers(found: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    for number, cases in found.items():
        for case, each in cases.items():
            to_one = each["units"] / found["1"][case]["units"]
            figures = (each["write_units"], each["read_units"], each["units"], to_one, each["failed_calls"])
            yield (int(number), case, *figures)


def _months(found: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    first = next(iter(next(iter(found.values())).values()))
    units = ("accept", "aggregate", "units")
    alone = (f"DynamoDB, {name}" for name in first["dynamodb"])
    yield ("events/s", "seconds", "events per call", *units, *alone, *first["whole"])
    for rate, intervals in found.items():
        for interval, each in intervals.items():
            figures = (each[name] for name in units)
            dollars = (*each["dynamodb"].values(), *each["whole"].values())
            yield (int(rate), int(interval), int(each["events_per_call"]), *figures, *dollars)


def packed_figures(report: Mapping[str, Any]) -> dict[str, str]:
    sizes = {name: _by_size(each) for name, each in report["packing"]["chunks"].items()}
    first = next(iter(sizes.values()))
    beside = {
        "an item per event": [(size, 1.0) for size, _ in first],
        "transaction per event": [(size, 4.0) for size, _ in first],
    }
    monthly: dict[str, list[tuple[float, float]]] = {}
    for rate, intervals in report["flushing"].items():
        each = intervals.get(str(_MONTHLY_INTERVAL))
        if each is None:
            continue
        named = {f"DynamoDB, {name}": dollars for name, dollars in each["dynamodb"].items()} | each["whole"]
        for name, dollars in named.items():
            monthly.setdefault(_short(name), []).append((float(rate), dollars))
    title = f"A month's bill, flushed every {_MONTHLY_INTERVAL} s"
    return {
        "packed": lines("Units to accept an event", "events per chunk", "units", sizes | beside),
        "months": lines(title, "events/s", "dollars", monthly),
    }


def _by_size(found: Mapping[str, Any]) -> list[tuple[float, float]]:
    return [(float(size), each["units"]) for size, each in found.items() if size.isdecimal()]


def _short(name: str) -> str:
    """A name that fits beside the figure."""
    return name.replace("EventIngest, packed, ", "packed, ").replace("in a function behind an API", "behind an API")
