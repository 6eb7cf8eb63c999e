"""A day's window at minute precision: hour and minute keys beside packed buckets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from typing import Any, Final

from benchmarks.databases import Database
from benchmarks.queue_and_stream import chunks
from benchmarks.window_designs import DAY, HourAndMinuteKeys, PackedBuckets, WindowDesign
from benchmarks.workloads import FIRST_JOB, PROVIDERS, Job, jobs
from simulation.dynamodb.capacity import Usage, dollars_per_million

# On the hour, when the known design reads most keys.
_EARLY: Final = (FIRST_JOB // 3600 + 27) * 3600


def measure(database: Database, batch: int) -> dict[str, Any]:
    """Count jobs with both designs; query each provider's last day while jobs come, after them, and looking back."""
    found = {}
    for kind in (HourAndMinuteKeys, PackedBuckets):
        database.create(kind.name, "pk", "sk")
        found[kind.name] = _measure(kind(database.client, kind.name), database.usage, batch)
    return found


def _measure(design: WindowDesign, usage: Usage, batch: int) -> dict[str, Any]:
    placed = jobs()
    late = (placed[-1].second // 3600 + 1) * 3600
    early_jobs = [job for job in placed if job.second <= _EARLY]
    before, read_units, read_calls, exact = copy(usage), 0.0, 0, True
    for part, now in ((early_jobs, _EARLY), (placed[len(early_jobs) :], late)):
        for some in chunks(part, batch):
            design.count(some)
        counted = copy(usage)
        exact &= _is_exact(design, placed, now)
        read_units += usage.reads - counted.reads
        read_calls += usage.calls - counted.calls
    queries = 2 * len(PROVIDERS)
    return {
        "write_units": (usage.writes - before.writes) / len(placed),
        "write_calls": (usage.calls - before.calls - read_calls) / len(placed),
        "read_units": read_units / queries,
        "read_calls": read_calls / queries,
        "dollars_per_million_reads": dollars_per_million(0, read_units / queries),
        "exact": exact,
        "exact_looking_back": _is_exact(design, placed, _EARLY),
    }


def _is_exact(design: WindowDesign, placed: Sequence[Job], now: int) -> bool:
    """Query all providers; what came within the current minute counts."""
    end = (now // 60 + 1) * 60
    due = Counter(job.provider for job in placed if end - DAY.total_seconds() <= job.second < end)
    return all(design.last_day(provider, now) == due[provider] for provider in PROVIDERS)
