"""Every table of the page, from the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from benchmarks.bill import LINES
from benchmarks.designs import DESIGNS
from benchmarks.packing import CALL
from benchmarks.pages import LEFT_OVER
from dynamodb_counters._cost.functions import GB_PER_CPU

Row: TypeAlias = Sequence[Any]
Tables: TypeAlias = dict[str, list[Row]]
Report: TypeAlias = Mapping[str, Any]

PACKED: Final = "Packed: "
"""Before headings that do not stand below that of packed events."""

PAGED: Final = "Pages: "

TITLES: Final = {design.name: design.title for design in DESIGNS}
_LOG: Final = "log_three_aggregates_"
_UNITS: Final = {"write units": "write_units", "read units": "read_units"}
_PER_EVENT: Final = {**_UNITS, "calls": "calls", "$ per million": "dollars_per_million"}
_COST: Final = {
    **_PER_EVENT,
    "error % under redelivery": "error_percent",
    "hot counter, events/s": "counter_events_per_second",
    "limited by": "limited_by",
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
_MEASURES: Final = {
    "unique": (
        "Members of the last 30 days",
        ("engine", "days", "kept as"),
        {
            "write units per member and day": "write_units",
            "with checkpoints": "with_checkpoints",
            "read units": "read_units",
            "read units of each day's": "series_read_units",
            "exact": "exact",
        },
    ),
    "percentiles": (
        "Percentiles of log-normal values",
        ("engine", "spread", "kept as"),
        {
            "write units per value": "write_units",
            "per batch and bucket": "units_per_bucket",
            "read units": "read_units",
            "error %": "error_percent",
        },
    ),
    "extremes": (
        "Largest value",
        ("engine", "values come", "kept by"),
        {"write units per value": "units_per_value", "read units": "read_units", "exact": "exact"},
    ),
    "thresholds": (
        "Thresholds of one group",
        ("engine", "events", "group"),
        {"units of counting": "units", "more than without": "more", "more per crossing": "more_per_crossing"},
    ),
}
_LATENCY: Final = {"median, s": "p50", "to PutItem's": "p50_ratio", "99th percentile, to PutItem's": "p99_ratio"}
_SECONDS: Final = {"CPU seconds": "cpu_seconds", "wall seconds": "wall_seconds"}


def tables(report: Report) -> Tables:
    """Every table by its heading: rows of which the first names the columns."""
    return {
        "Goals": _table(("name",), report["goals"], _same("value", "goal", "met")),
        **_of_cost(report),
        **packed_tables(report),
        **paged_tables(report),
        **_of_measures(report),
        **_of_partitions(report),
        **_of_bill(report),
        **_of_times(report),
        **_of_simulation(report),
    }


def _of_cost(report: Report) -> Tables:
    cost, found = report["cost"], {}
    for workload, title in (("hot", "Hot workload"), ("long_tail", "Long tail"), ("log", "Real log, views per URL")):
        if workload in cost:
            designs = {TITLES[name]: {**each, **cost["redelivered"][name]} for name, each in cost[workload].items()}
            found[title] = _table(("design",), designs, _COST)
    logs = {name.removeprefix(_LOG).replace("_", ", "): each for name, each in cost.items() if name.startswith(_LOG)}
    if logs:
        columns = {"write units per event": "write_units", "read units": "read_units"}
        found["Real log, three aggregates"] = _table(("records per batch",), logs, columns)
    titles = {"three_adds": "three ADDs and a query", "accept_and_watermark": "this"}
    rows = {titles[name]: each for name, each in report["leaderboard"].items() if name in titles}
    found["Leaderboard"] = _table(("design",), rows, {**_PER_EVENT, "error %": "error_percent"})
    windows = {engine: _spaced(designs) for engine, designs in report["windows"].items()}
    found["Windows: a day at minute precision"] = _table(("engine", "design"), windows, _WINDOWS)
    found["Reads"] = _table(("question",), report["reads"], _QUESTIONS)
    if "latency" in report:
        found["Latency on DynamoDB Local"] = _table(("call",), report["latency"], _LATENCY)
    if "designs" in report["engine"]:
        log = "three aggregates of the log"
        titles = TITLES | {"packed_log": f"this: packed, {log}", "paged_log": f"this: packed, {log} in pages"}
        found["DynamoDB Local and the rule"] = [
            ("design", "write units: engine", "rule", "read units: engine", "rule", "calls: engine", "rule", "exact"),
            *((titles[name], *each.values()) for name, each in report["engine"]["designs"].items()),
        ]
    return found


def packed_tables(report: Report) -> Tables:
    packing, workloads = report["packing"], report["packing"]["chunks"]
    by_chunk = {name: {size: each["units"] for size, each in sizes.items()} for name, sizes in workloads.items()}
    writers = {
        int(number): {
            case: {**each, "to_one": each["units"] / report["writers"]["1"][case]["units"]}
            for case, each in cases.items()
        }
        for number, cases in report["writers"].items()
    }
    figures = {**_UNITS, "units": "units", "to one process": "to_one", "calls that failed": "failed_calls"}
    found: Tables = {
        f"{PACKED}units to accept an event, by events per chunk": _across("events per chunk", by_chunk),
        f"{PACKED}units per distinct event, with duplicates": _across("duplicates", packing["duplicates"]),
        f"{PACKED}late events": [("what", "units"), *packing["late"].items()],
        f"{PACKED}one event of a bucket that the process does not know": _table(
            ("events in the bucket",),
            {int(events): each for events, each in packing["cold"].items()},
            {"chunks": "chunks", **_UNITS, "units": "units"},
        ),
        f"{PACKED}several processes on the same log": _table(("processes", "how"), writers, figures),
        "When not to pack": [
            ("events", "units to accept one", "as an item"),
            ("one per call", workloads["hot"]["1"]["units"], 1.0),
            ("one per second, flushed every second", report["flushing"]["1"]["1"]["accept"], 1.0),
            (f"{CALL} per call, their times scattered over a month", packing["scattered"], 1.0),
            ("late, and its bucket known", packing["late"]["per late event"], 1.0),
            ("one of a bucket of 10,000 not known", packing["cold"]["10000"]["units"], 1.0),
        ],
        f"{PACKED}units and dollars per month": list(_months(report["flushing"])),
        f"{PACKED}CPU, microseconds per event": _across("step", _spaced(report["chunk_cpu"])),
    }
    return found


def paged_tables(report: Report) -> Tables:
    pages, growth = report["pages"], {int(groups): each for groups, each in report["page_growth"].items()}
    found: Tables = {}
    if "log" in pages:
        log = {name: {**each, **pages["cpu"].get(name, {})} for name, each in pages["log"].items()}
        columns = {
            "units per event": "units",
            "of which counting": "counting",
            "units a month later": "later",
            "requests to count": "calls",
            "CPU to count, microseconds": "microseconds",
        }
        found[f"{PAGED}real log, three aggregates"] = [
            ("counting by", *columns),
            *((name, *(each.get(key) for key in columns.values())) for name, each in log.items()),
        ]
        found[f"{PAGED}distinct members of the log"] = _table(
            ("members, kept as",), pages["distinct"], {"units per event": "units", "requests to count": "calls"}
        )
        reads = {"read units": "units", "requests": "calls", "pages": "pages"}
        found[f"{PAGED}reads"] = [
            ("question", *reads),
            *((name, *(each.get(key) for key in reads.values())) for name, each in pages["reads"].items()),
        ]
        found[f"{PAGED}units per event of counting, by what for"] = _table(
            ("groups",), pages["left_over"], {name: name for name in LEFT_OVER}
        )
    found |= {
        f"{PAGED}a hot counter": _table(
            ("counters",), {int(groups): each for groups, each in pages["hot"].items()}, _same("items", "pages")
        ),
        f"{PAGED}units per event of counting, by the number of groups": _table(
            ("groups",),
            growth,
            _same("items", "pages", "groups_per_page", "bytes_per_group")
            | {"largest page, bytes": "largest"}
            | {"read units, page known": "page_known", "page not known": "page_not_known"}
            | {"requests of a listing": "listing_requests"},
        ),
        f"{PAGED}units per event of counting, by the table's partitions": [
            ("partitions", *next(iter(report["page_shards"].values()))),
            *((int(number), *each.values()) for number, each in report["page_shards"].items()),
        ],
        f"{PAGED}units per batch of a shard that has one every ten minutes": [
            ("partitions", *(name.replace("_", " ") for name in next(iter(report["rare_batches"].values())))),
            *((int(number), *each.values()) for number, each in report["rare_batches"].items()),
        ],
    }
    return found


def _of_measures(report: Report) -> Tables:
    return {
        title: _table(kinds, {engine: each[name] for engine, each in report["measures"].items()}, columns)
        for name, (title, kinds, columns) in _MEASURES.items()
    }


def _months(found: Report) -> Iterator[Row]:
    first = found["1"]["1"]
    units = ("accept", "aggregate", "units")
    yield (
        "events/s",
        "seconds",
        "events per call",
        *units,
        *(f"DynamoDB, {name}" for name in first["dynamodb"]),
        *first["whole"],
    )
    for rate, intervals in found.items():
        for interval, each in intervals.items():
            dollars = (*each["dynamodb"].values(), *each["whole"].values())
            yield (int(rate), int(interval), int(each["events_per_call"]), *(each[name] for name in units), *dollars)


def _of_partitions(report: Report) -> Tables:
    found = {
        number: each["groups"] | {f"group touched {rate} times per day": at for rate, at in each["long_tail"].items()}
        for number, each in report["partitions"].items()
    }
    units = {number: {item: each["write_units"] for item, each in items.items()} for number, items in found.items()}
    # Without exactness, updates take the same in every table, but for the size of the buckets.
    careless = {item: each["not_exact"] for items in found.values() for item, each in items.items()}
    shards = {
        number: {
            **each,
            "checkpoints: write units": each["shards"].get("checkpoints", 0.0),
            **{f"{kind}: read units": each["reads"].get(kind, 0.0) for kind in _READS},
        }
        for number, each in report["partitions"].items()
    }
    columns = ("minutes_per_batch", "updates_per_batch", "checkpoints: write units")
    corrected = f"An hour bucket that 100 partitions correct once a day, day {report['sizes']['corrected_days']}"
    return {
        "Write units per update, by the table's partitions": _across("item", {**units, "not exact": careless}),
        "Parts of an update": _table(("partitions", "item"), found, _PARTS),
        "Cost of shards, per update": _table(
            ("partitions",), shards, _same(*columns, *(f"{kind}: read units" for kind in _READS))
        ),
        corrected: _table(
            ("corrections",),
            report["corrected"],
            {"write units per update": "write_units"} | _same("not_exact", "bytes", "full_on_day"),
        ),
        "Delivered again": _table(
            ("what",),
            _spaced(report["redelivered"]),
            _same("records", "shards", "items") | _UNITS | {"wrong counts": "wrong"},
        ),
    }


def _of_bill(report: Report) -> Tables:
    bills = {int(rate): ways for rate, ways in report["bill"].items()}
    cpu = [(name.replace("_", ", "), each, 1e6 / each / GB_PER_CPU) for name, each in report["function_cpu"].items()]
    return {
        "The whole bill of a month, dollars": _table(("events/s", "way in"), bills, _same(*LINES, "total")),
        "The functions' CPU time": [("function", "microseconds per event", "events per GB-second"), *cpu],
    }


def _of_times(report: Report) -> Tables:
    asset = report["asset"]
    apps = {name: {**each, "resources": sum(each["resources"].values())} for name, each in report["synth"].items()}
    return {
        "CPU, microseconds per record": _across("step", _spaced(report["cpu"])),
        "One big batch": [tuple(report["memory"]), tuple(report["memory"].values())],
        "Cold start": _table(("process",), report["cold_start"], _SECONDS),
        "Asset": [("part", "bytes"), *asset["parts"].items(), ("total", asset["total_bytes"])],
        "Synthesis": _table(("app",), apps, {**_SECONDS, "resources": "resources"}),
    }


def _of_simulation(report: Report) -> Tables:
    found: Tables = {}
    figures = ("events_per_second", "keeps_up", "throttles_per_event", "conflicts_per_event", "lag_seconds")
    for name, each in report["scale"].items():
        groups = int(name.removeprefix("groups_"))
        rates = {int(rate.removeprefix("rate_")): _spaced(designs) for rate, designs in each.items()}
        found[f"Simulation, {groups:,} group{'s' if groups > 1 else ''}"] = _table(
            ("events/s", "design"), rates, _same(*figures, "dollars_per_million")
        )
    found["Simulation: units of a counter's update"] = [
        ("groups", "events/s", "fed by", "shards", "units of an update", "write units per event"),
        *(tuple(row.values()) for row in report["scaled_counter"]),
    ]
    return found


def _same(*keys: str) -> dict[str, str]:
    """Columns that are named as their figures are."""
    return {key.replace("_", " "): key for key in keys}


def _spaced(found: Report) -> dict[str, Any]:
    return {name.replace("_", " "): each for name, each in found.items()}


_READS: Final = ("checkpoints", "deployments", "pruning")
_PARTS: Final = _same("updating", "refused", "pruning", "index", "shards", "write_units", "not_exact")


def _table(kinds: Sequence[str], found: Mapping[Any, Any], columns: Mapping[str, str]) -> list[Row]:
    """A row per entry; an entry per kind is nested in that of the kind before it."""
    return [(*kinds, *columns), *_rows(len(kinds), found, columns)]


def _rows(depth: int, found: Mapping[Any, Any], columns: Mapping[str, str]) -> Iterator[Row]:
    for name, each in found.items():
        if depth > 1:
            yield from ((name, *row) for row in _rows(depth - 1, each, columns))
        else:
            yield (name, *(each[key] for key in columns.values()))


def _across(kind: str, found: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """A column per entry, and a row for each name that an entry has."""
    names = dict.fromkeys(name for each in found.values() for name in each)
    return [(kind, *found), *((name, *(each.get(name) for each in found.values())) for name in names)]
