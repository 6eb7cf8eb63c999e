"""A day's window at minute precision: hour and minute keys beside packed buckets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from benchmarks.databases import EngineDatabase, MemoryDatabase
from benchmarks.queue_and_stream import chunks
from benchmarks.window_designs import DAY, HourAndMinuteKeys, PackedBuckets, WindowDesign
from benchmarks.workloads import FIRST_JOB, PROVIDERS, Job, jobs
from simulation.dynamodb.capacity import Usage, dollars_per_million

# On the hour, when the known design reads most keys.
_EARLY: Final = (FIRST_JOB // 3600 + 27) * 3600
_TABLES: Final = {"hour_minute_keys": "benchmark-keys", "packed_buckets": "benchmark-buckets"}


def measure(database: MemoryDatabase | EngineDatabase, batch: int) -> dict[str, Any]:
    """Count jobs with both designs; query each provider's last day while jobs come, after them, and looking back."""
    for table in _TABLES.values():
        database.create(table, "pk", "sk")
    keys, buckets = _TABLES.values()
    designs: dict[str, WindowDesign] = dict(
        zip(_TABLES, (HourAndMinuteKeys(database.client, keys), PackedBuckets(database.client, buckets)), strict=True)
    )
    return {name: _measure(design, database.usage, batch) for name, design in designs.items()}


def _measure(design: WindowDesign, usage: Usage, batch: int) -> dict[str, Any]:
    placed = jobs()
    late = (placed[-1].second // 3600 + 1) * 3600
    early_jobs = [job for job in placed if job.second <= _EARLY]
    writes = reads = (0, 0.0, 0.0)
    exact = True
    for part, now in ((early_jobs, _EARLY), (placed[len(early_jobs) :], late)):
        before = _mark(usage)
        for some in chunks(part, batch):
            design.count(some)
        counted = _mark(usage)
        exact &= _is_exact(design, placed, now)
        writes = _sum(writes, before, counted)
        reads = _sum(reads, counted, _mark(usage))
    queries = 2 * len(PROVIDERS)
    return {
        "write_units": writes[1] / len(placed),
        "write_calls": writes[0] / len(placed),
        "read_units": reads[2] / queries,
        "read_calls": reads[0] / queries,
        "dollars_per_million_reads": dollars_per_million(0, reads[2] / queries),
        "exact": exact,
        "exact_looking_back": _is_exact(design, placed, _EARLY),
    }


def _is_exact(design: WindowDesign, placed: Sequence[Job], now: int) -> bool:
    """Query all providers; what came within the current minute counts."""
    end = (now // 60 + 1) * 60
    first = end - int(DAY.total_seconds())
    return all(
        design.last_day(provider, now) == sum(job.provider == provider and first <= job.second < end for job in placed)
        for provider in PROVIDERS
    )


def _mark(usage: Usage) -> tuple[int, float, float]:
    return usage.calls, usage.writes, usage.reads


def _sum(
    total: tuple[int, float, float], before: tuple[int, float, float], after: tuple[int, float, float]
) -> tuple[int, float, float]:
    calls, writes, reads = (so_far + now - then for so_far, then, now in zip(total, before, after, strict=True))
    return int(calls), writes, reads
