"""Runs every benchmark and collects the figures."""

from __future__ import annotations

import os
import platform
import re
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeAlias

from benchmarks import cold_start, cost, cpu, latency, leaderboard, pages, partitions, reads, windows, workloads
from benchmarks.cost_page import dollars
from benchmarks.databases import EngineDatabase, MemoryDatabase
from benchmarks.designs import DESIGNS
from benchmarks.designs.ours import Ours, OursOnThree, PackedEvents, PackedOnThree, PackedOnThreeAtOnce, PagedOnThree
from benchmarks.goals import goals
from benchmarks.packing import accept_units
from simulation.engines import EngineUnavailableError, dynamodb_local
from simulation.engines.dynamodb_local import DynamoDBLocal

Say = Callable[[str], None]
Report: TypeAlias = dict[str, Any]
Keep: TypeAlias = Callable[[Report], object]
Section: TypeAlias = tuple[str, Mapping[str, Callable[[Report], Any]]]
"""A title, and by their names the parts of the report, measured by what was measured before."""

_BATCH: Final = 1_000


@dataclass(frozen=True)
class Sizes:
    """How much is measured: events of each workload, batches and rounds for CPU time."""

    events: int = 100_000
    disturbed: int = 20_000
    engine: int = 500
    players: int = 1_000
    members: int = 50_000
    batches: tuple[int, ...] = (100, 1_000, 10_000)
    aggregates: tuple[int, ...] = (1, 3, 20)
    rounds: int = 5
    big_batch: int = 10_000
    cold_rounds: int = 7
    logged: int | None = None
    read: int = 20_000
    days: float = 2.0


# Just enough to show that everything runs.
TINY: Final = Sizes(200, 2_000, 20, 5, 50, (100, 1_000), (1, 3), 1, 200, 1, 500, 500, 0.01)


def run(sizes: Sizes, say: Say, keep: Keep, *, with_engine: bool = True) -> Report:
    """Measure every section; `keep` gets the report after each."""
    start = time.perf_counter()
    report: Report = {"machine": _machine(), "sizes": asdict(sizes), "engine": {"skipped": "not asked for"}}
    measure_sections(report, _sections(sizes, say, with_engine=with_engine), say, keep)
    report["seconds"] = time.perf_counter() - start
    keep(report)
    return report


def measure_sections(report: Report, sections: Iterable[Section], say: Say, keep: Keep) -> None:
    """Add what each section measures to a report; one that fails is listed in `failed`, and costs no other."""
    report["failed"] = {}
    for title, measure in sections:
        say(title)
        try:
            report |= {name: part(report) for name, part in measure.items()}
        except Exception as error:  # noqa: BLE001  # Hours of other sections are worth more.
            report["failed"][title] = f"{type(error).__name__}: {error}"
            say(f"{title} failed\n{traceback.format_exc()}")
        keep(report)


def _sections(sizes: Sizes, say: Say, *, with_engine: bool) -> Iterator[Section]:
    # Timings first, while this process is as small as a function's: CDK makes garbage collection slow.
    yield (
        "CPU time",
        {
            "cpu": lambda _: cpu.measure(sizes.batches, sizes.aggregates, sizes.rounds),
            "https": lambda _: cpu.over_https(sizes.batches[:2], sizes.aggregates, sizes.rounds),
            "memory": lambda _: cpu.peak_memory(sizes.big_batch, max(sizes.aggregates)),
        },
    )
    yield (
        "cold start",
        {"cold_start": lambda _: cold_start.measure(sizes.cold_rounds), "asset": lambda _: cold_start.asset_bytes()},
    )
    yield "cost", {"cost": lambda _: _costs(sizes, say), "dollars": lambda _: dollars()}
    yield "packed events", {"packing": lambda _: accept_units(sizes.logged)}
    yield (
        "leaderboard, windows, reads and partitions",
        {
            "ranks": lambda _: leaderboard.ranks(sizes.members, sizes.batches),
            "leaderboard": lambda _: leaderboard.measure(sizes.players, _BATCH),
            "windows": lambda _: {"memory": windows.measure(MemoryDatabase(), 10)},
            "reads": lambda _: reads.measure(sizes.read),
            "partitions": lambda _: partitions.measure(sizes.days),
        },
    )
    yield "groups in pages", {"pages": lambda _: pages.measure(sizes.rounds, sizes.logged)}
    if with_engine:
        yield "engine", {"engine": lambda report: _on_engine(sizes, say, report)}
    yield "goals", {"goals": goals}


def _costs(sizes: Sizes, say: Say) -> dict[str, Any]:
    costs: dict[str, Any] = {"hot": {}, "long_tail": {}, "redelivered": {}}
    hot, tail = workloads.hot(sizes.events), workloads.long_tail(sizes.events, sizes.events // 2)
    disturbed = workloads.hot(sizes.disturbed)
    for design in DESIGNS:
        say(f"cost of {design.title}")
        costs["hot"][design.name] = cost.cost(design, hot, _BATCH)
        costs["long_tail"][design.name] = cost.cost(design, tail, _BATCH)
        # About as many batches, where a record holds many events.
        batch = 100 if design.records_per_batch is None else 5
        costs["redelivered"][design.name] = cost.redelivered(design, disturbed, batch)
    costs["hot_while_events_come"] = cost.steady(Ours, hot, _BATCH)
    costs["hot_while_events_come_packed"] = cost.steady(PackedEvents, hot, _BATCH)
    if workloads.LOG.exists():
        say("real log")
        log = workloads.log()[: sizes.logged]
        for batch in (1_000, 10_000):
            costs[f"log_three_aggregates_{batch}"] = cost.cost(OursOnThree, log, batch)
        for packed in (PackedOnThree, PackedOnThreeAtOnce):
            name = f"log_three_aggregates_packed_{packed.records_per_batch}"
            costs[name] = cost.cost(packed, log, _BATCH)
        costs["log"] = {design.name: cost.cost(design, log, _BATCH) for design in DESIGNS}
    else:
        say(f"no real log at {workloads.LOG}: skipped")
    return costs


def _on_engine(sizes: Sizes, say: Say, report: Report) -> dict[str, Any]:
    try:
        with dynamodb_local.start() as engine:
            say(f"DynamoDB Local, {sizes.engine} events per design")
            return measure_engine(engine, sizes.engine, report)
    except EngineUnavailableError as missing:
        say(f"DynamoDB Local skipped: {missing}")
        return {"skipped": str(missing)}


def measure_engine(engine: DynamoDBLocal, events: int, report: Report) -> dict[str, Any]:
    """Measure a sample on AWS's own engine; its windows go where those in memory are."""
    views = workloads.hot(events)
    costs: dict[str, Any] = {"designs": {design.name: cost.on_engine(engine, design, views, 100) for design in DESIGNS}}
    if workloads.LOG.exists():
        for name, design in (("packed_log", PackedOnThree), ("paged_log", PagedOnThree)):
            costs["designs"][name] = cost.on_engine(engine, design, workloads.log()[: 4 * events], 100)
    report["latency"] = latency.measure(engine, events)
    with EngineDatabase(engine) as database:
        report["windows"]["engine"] = windows.measure(database, 10)
    return costs


def _machine() -> dict[str, Any]:
    path = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.*)", path.read_text() if path.exists() else "", re.MULTILINE)
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("boto3", "aws-lambda-powertools", "aws-cdk-lib")},
    }
