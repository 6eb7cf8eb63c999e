"""Runs every benchmark and collects the figures."""

from __future__ import annotations

import os
import platform
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeAlias

from benchmarks import (
    bill,
    chunk_cpu,
    cold_start,
    cost,
    cpu,
    flushing,
    leaderboard,
    packing,
    partitions,
    redelivered,
    scale,
    synth,
    windows,
    workloads,
    writers,
)
from benchmarks.databases import EngineDatabase, MemoryDatabase
from benchmarks.designs import DESIGNS
from benchmarks.designs.ours import Ours, OursOnThree
from benchmarks.designs.packed import PackedEvents, PackedOnThree, PackedOnThreeAtOnce
from benchmarks.goals import goals
from dynamodb_counters._cost.batches import touched
from simulation.engines import EngineUnavailableError, dynamodb_local
from simulation.engines.dynamodb_local import DynamoDBLocal

Say = Callable[[str], None]
Report: TypeAlias = dict[str, Any]
Keep: TypeAlias = Callable[[Report], object]
Section: TypeAlias = tuple[str, Callable[[Report], Report]]
"""A title, and what measures it, of what was measured before."""

_BATCH: Final = 1_000


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    `events` of a workload, `disturbed` of one under redelivery, `engine` of a sample on DynamoDB Local, `logged` of the
    real log; `batches`, `aggregates` and `rounds` for CPU time, `big_batch` for memory; `packed` events, `packed_batch`
    of them at once for CPU time; `rates`, `groups` and `seconds` for the model.
    The `partitions` of tables, and simulated days: with batches on every
    shard, with a long tail, with an hour bucket that is corrected; hours that are replayed.
    """

    events: int = 100_000
    disturbed: int = 20_000
    engine: int = 500
    players: int = 1_000
    batches: tuple[int, ...] = (100, 1_000, 10_000)
    aggregates: tuple[int, ...] = (1, 3, 20)
    rounds: int = 5
    big_batch: int = 10_000
    packed: int = 20_000
    packed_batch: int = 6_400
    rates: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    groups: tuple[int, ...] = (1, 1_000_000)
    seconds: float = 30.0
    synth_rounds: int = 2
    cold_rounds: int = 7
    partitions: tuple[int, ...] = (1, 4, 16, 64, 100, 256)
    days: float = 2.0
    tail_days: int = 20
    corrected_days: int = 90
    replayed_hours: int = 24
    logged: int | None = None


SMALL: Final = Sizes(
    events=20_000,
    disturbed=10_000,
    engine=200,
    rounds=2,
    synth_rounds=1,
    cold_rounds=3,
    partitions=(4, 16, 64, 100),
    days=0.5,
    tail_days=8,
    corrected_days=20,
)
"""For a busy machine: a fifth of the events, fewer rounds."""

TINY: Final = Sizes(
    200, 2_000, 20, 5, (100, 1_000), (1, 3), 1, 200, 640, 640, (1_000,), (1,), 3.0, 1, 1, (4,), 0.1, 1, 2, 1, 500
)
"""Just enough to show that everything runs."""


def run(sizes: Sizes, say: Say, keep: Keep, *, with_engine: bool = True) -> Report:
    """Measure every section; `keep` gets the report after each."""
    start = time.perf_counter()
    report: Report = {"machine": _machine(), "sizes": asdict(sizes)}
    measure_sections(report, _sections(sizes, say, with_engine=with_engine), say, keep)
    report["seconds"] = time.perf_counter() - start
    keep(report)
    return report


def measure_sections(report: Report, sections: Iterable[Section], say: Say, keep: Keep) -> None:
    """Add what each section measures to a report; one that fails is told in `failed`, and costs no other."""
    report["failed"] = {}
    for title, measure in sections:
        say(title)
        try:
            report |= measure(report)
        except Exception as error:  # noqa: BLE001  # Hours of other sections are worth more.
            report["failed"][title] = f"{type(error).__name__}: {error}"
            say(f"{title} failed\n{traceback.format_exc()}")
        keep(report)


def _sections(sizes: Sizes, say: Say, *, with_engine: bool) -> Iterator[Section]:
    # Timings first, while this process is as small as a function's: CDK makes garbage collection slow.
    yield (
        "CPU time",
        lambda _: {
            "cpu": cpu.measure(sizes.batches, sizes.aggregates, sizes.rounds),
            "chunk_cpu": chunk_cpu.measure(sizes.packed_batch, sizes.rounds),
            "memory": cpu.peak_memory(sizes.big_batch, max(sizes.aggregates)),
        },
    )
    yield (
        "cold start",
        lambda _: {
            "cold_start": cold_start.measure(sizes.cold_rounds),
            "asset": cold_start.asset_bytes(),
        },
    )
    yield "synthesis", lambda _: {"synth": synth.measure(sizes.synth_rounds)}
    yield "cost", lambda _: {"cost": _costs(sizes, say)}
    yield (
        "leaderboard and windows",
        lambda _: {
            "leaderboard": leaderboard.measure(sizes.players, _BATCH),
            "windows": {"memory": windows.measure(MemoryDatabase(), 10)},
        },
    )
    yield "partitions", lambda _: {"partitions": _partitions(sizes, say)}
    yield (
        "corrections and redelivery",
        lambda report: {
            "corrected": partitions.corrected(_shards(sizes, report), sizes.corrected_days),
            "redelivered": redelivered.measure(sizes.replayed_hours),
        },
    )
    yield "bill", lambda report: {"bill": bill.measure(sizes.rounds, report)}
    yield (
        "packed events",
        lambda report: {
            "packing": packing.measure(sizes.packed),
            "writers": writers.measure(sizes.packed),
            "flushing": flushing.measure(sizes.packed, report["bill"]["cpu_microseconds"]),
        },
    )
    yield (
        "simulation",
        lambda _: {
            "scale": scale.measure(sizes.rates, sizes.groups, sizes.seconds),
            "scaled_counter": scale.prices(sizes.rates, sizes.groups),
        },
    )
    yield (
        "engine",
        lambda report: {"engine": _on_engine(sizes, say, report) if with_engine else {"skipped": "not asked for"}},
    )
    yield "goals", lambda report: {"goals": goals(report)}


def _partitions(sizes: Sizes, say: Say) -> dict[str, Any]:
    found = {}
    for number in sizes.partitions:
        say(f"{number} partitions")
        # Items with hundreds of watermarks take long to simulate.
        days = sizes.days if number <= 64 else sizes.days / 2
        found[str(number)] = partitions.measure(number, days, sizes.tail_days)
    if 16 in sizes.partitions:
        found["16, replaced at once"] = partitions.measure(16, sizes.days, 0, staggered=False)
    return found


def _shards(sizes: Sizes, report: Report) -> int:
    of = "100" if 100 in sizes.partitions else str(sizes.partitions[-1])
    return sum(report["partitions"][of]["shards"].values())


def _costs(sizes: Sizes, say: Say) -> dict[str, Any]:
    found: dict[str, Any] = {"hot": {}, "long_tail": {}, "redelivered": {}}
    hot, tail = workloads.hot(sizes.events), workloads.long_tail(sizes.events, sizes.events // 2)
    disturbed = workloads.hot(sizes.disturbed)
    for design in DESIGNS:
        say(f"cost of {design.title}")
        found["hot"][design.name] = cost.cost(design, hot, _BATCH)
        found["long_tail"][design.name] = cost.cost(design, tail, _BATCH)
        # About as many batches, where a record holds many events.
        batch = 100 if design.records_per_batch is None else 5
        found["redelivered"][design.name] = cost.redelivered(design, disturbed, batch)
    found["hot_while_events_come"] = cost.steady(Ours, hot, _BATCH)
    found["hot_while_events_come_packed"] = cost.steady(PackedEvents, hot, _BATCH)
    found["accept_in_bulk"] = cost.accepting(hot)
    if workloads.LOG.exists():
        say("real log")
        log = workloads.log()[: sizes.logged]
        for batch in (1_000, 10_000):
            found[f"log_three_aggregates_{batch}"] = cost.cost(OursOnThree, log, batch)
        for packed in (PackedOnThree, PackedOnThreeAtOnce):
            name = f"log_three_aggregates_packed_{packed.records_per_batch}"
            found[name] = cost.cost(packed, log, _BATCH)
        found["log"] = {design.name: cost.cost(design, log, _BATCH) for design in DESIGNS}
    else:
        say(f"no real log at {workloads.LOG}: skipped")
    return found


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
    found: dict[str, Any] = {"designs": {design.name: cost.on_engine(engine, design, views, 100) for design in DESIGNS}}
    found["packing"] = packing.on_engine(engine, 4 * events) | writers.on_engine(engine, 4 * events)
    if workloads.LOG.exists():
        log = cost.on_engine(engine, PackedOnThree, workloads.log()[: 4 * events], 100)
        found["packing"]["log, three aggregates, end to end"] = {
            f"{by}_{units}_units": log[f"{by}_{units}_units"]
            for units in ("write", "read")
            for by in ("engine", "rule")
        }
    with EngineDatabase(engine) as database:
        report["windows"]["engine"] = windows.measure(database, 10)
    found["model"] = [_validated(engine, events, groups) for groups in (1, 50, 1_000_000)]
    return found


def _validated(engine: DynamoDBLocal, events: int, groups: int) -> dict[str, Any]:
    """The model's units per event beside those of a real run."""
    batch = 100
    views = workloads.long_tail(events, groups)
    measured = cost.on_engine(engine, Ours, views, batch)
    # DynamoDB Local reports no units for PartiQL: an event is one.
    return {
        "groups": groups,
        "batch": batch,
        "modelled_write_units": 1 + touched(groups, batch) / batch,
        "measured_write_units": 1 + measured["engine_write_units"],
    }


def _machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("boto3", "aws-lambda-powertools", "aws-cdk-lib")},
    }


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    for line in known.read_text().splitlines() if known.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
