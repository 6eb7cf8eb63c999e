"""A day's window at minute precision: hour and minute keys against packed buckets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from benchmarks.databases import EngineDatabase, MemoryDatabase
from benchmarks.jobs import FIRST, PROVIDERS, Job, generate
from benchmarks.queue_and_stream import chunks
from benchmarks.window_designs import DAY, HourAndMinuteKeys, PackedBuckets, WindowDesign
from simulation.dynamodb.capacity import Usage, dollars_per_million

# On the hour, when the known design asks for most keys.
_EARLY: Final = (FIRST // 3600 + 27) * 3600
_TABLES: Final = {"hour_minute_keys": "benchmark-keys", "packed_buckets": "benchmark-buckets"}


def measure(database: MemoryDatabase | EngineDatabase, batch: int) -> dict[str, Any]:
    """Count jobs with both designs; ask for each provider's last day while jobs come, after them, and looking back.

    Parameters
    ----------
    database : MemoryDatabase or EngineDatabase
        An empty engine.
    batch : int
        Records a batch.

    Returns
    -------
    dict
        Figures by design.
    """
    for table in _TABLES.values():
        database.create(table, "pk", "sk")
    keys, buckets = _TABLES.values()
    designs: dict[str, WindowDesign] = dict(
        zip(_TABLES, (HourAndMinuteKeys(database.client, keys), PackedBuckets(database.client, buckets)), strict=True)
    )
    return {name: _measure(design, database.usage, batch) for name, design in designs.items()}


def _measure(design: WindowDesign, usage: Usage, batch: int) -> dict[str, Any]:
    jobs = generate()
    late = (jobs[-1].second // 3600 + 1) * 3600
    early_jobs = [job for job in jobs if job.second <= _EARLY]
    writes = reads = (0, 0.0, 0.0)
    exact = True
    for part, now in ((early_jobs, _EARLY), (jobs[len(early_jobs) :], late)):
        before = _mark(usage)
        for some in chunks(part, batch):
            design.count(some)
        counted = _mark(usage)
        exact &= _is_exact(design, jobs, now)
        writes = _sum(writes, before, counted)
        reads = _sum(reads, counted, _mark(usage))
    questions = 2 * len(PROVIDERS)
    return {
        "write_units": writes[1] / len(jobs),
        "write_calls": writes[0] / len(jobs),
        "read_units": reads[2] / questions,
        "read_calls": reads[0] / questions,
        "dollars_per_million_reads": dollars_per_million(0, reads[2] / questions),
        "exact": exact,
        "exact_looking_back": _is_exact(design, jobs, _EARLY),
    }


def _is_exact(design: WindowDesign, jobs: Sequence[Job], now: int) -> bool:
    """Ask for all providers; what came within the minute that is asked in counts."""
    end = (now // 60 + 1) * 60
    first = end - int(DAY.total_seconds())
    return all(
        design.last_day(provider, now) == sum(job.provider == provider and first <= job.second < end for job in jobs)
        for provider in PROVIDERS
    )


def _mark(usage: Usage) -> tuple[int, float, float]:
    return usage.calls, usage.writes, usage.reads


def _sum(
    total: tuple[int, float, float], before: tuple[int, float, float], after: tuple[int, float, float]
) -> tuple[int, float, float]:
    calls, writes, reads = (known + now - then for known, then, now in zip(total, before, after, strict=True))
    return int(calls), writes, reads
