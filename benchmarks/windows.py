"""A day's window at minute precision: hour and minute keys against packed buckets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from benchmarks.databases import EngineDatabase, MemoryDatabase
from benchmarks.usage import Usage, dollars_a_million
from benchmarks.windows_reference import HourAndMinuteKeys, generate
from dynamodb_counters import Counters, Event, Window
from dynamodb_counters.aggregator import Aggregator
from dynamodb_counters.store.table import Table

_JOB: Final = Event("job", pk="JOB#{id}", sk="JOB")
_JOBS: Final = Window("jobs", _JOB, pk="PROVIDER#{provider}", time="at", retention=timedelta(hours=50))
_SHARD: Final = "shardId-00000001414576573621-f55eea83"
_DAY: Final = timedelta(hours=24)
_KEYS, _BUCKETS = "benchmark-keys", "benchmark-buckets"


def measure(database: MemoryDatabase | EngineDatabase, batch: int) -> dict[str, Any]:
    """Count jobs with both designs and ask both for each provider's last day.

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
    jobs = generate(1)
    # On the hour, when the known design asks for most keys.
    end = (jobs[-1].second // 3600 + 1) * 3600
    for name in (_KEYS, _BUCKETS):
        database.create(name, "pk", "sk")
    known = HourAndMinuteKeys(database.client, _KEYS)
    store = Table(_BUCKETS, database.client, clock=lambda: float(end))
    aggregator = Aggregator(store, (_JOBS,), quarantine_retention_seconds=86_400)
    counters = Counters(_BUCKETS, client=database.client, clock=lambda: float(end))
    found: dict[str, Any] = {}

    before = _mark(database.usage)
    for start in range(0, len(jobs), batch):
        known.count(jobs[start : start + batch])
    found["hour_minute_keys"] = _writes(database.usage, before, len(jobs))
    before = _mark(database.usage)
    for start in range(0, len(jobs), batch):
        records = [
            {
                "eventName": "INSERT",
                "dynamodb": {
                    "SequenceNumber": str(10**21 + start + place),
                    "ApproximateCreationDateTime": job.second,
                    "NewImage": {
                        "_type": {"S": "job"},
                        "provider": {"S": job.provider},
                        "at": {"N": str(job.second)},
                    },
                },
            }
            for place, job in enumerate(jobs[start : start + batch])
        ]
        aggregator.handle({"shardId": _SHARD, "Records": records})
    found["packed_buckets"] = _writes(database.usage, before, len(jobs))

    as_of = datetime.fromtimestamp(end, tz=UTC)
    questions: tuple[tuple[str, Callable[[str], int]], ...] = (
        ("hour_minute_keys", lambda provider: known.last_day(provider, end)),
        (
            "packed_buckets",
            lambda provider: int(counters.window(_JOBS, {"provider": provider}, last=_DAY, as_of=as_of).count),
        ),
    )
    for name, ask in questions:
        before = _mark(database.usage)
        right = True
        for provider in ("1", "2", "3"):
            first = (end // 60 + 1) * 60 - 86_400
            right &= ask(provider) == sum(job.provider == provider and first <= job.second for job in jobs)
        calls, _, reads = (now - then for now, then in zip(_mark(database.usage), before, strict=True))
        found[name] |= {
            "read_units": reads / 3,
            "read_calls": calls / 3,
            "dollars_per_million_reads": dollars_a_million(0, reads / 3),
            "exact": right,
        }
    found["hour_minute_keys"]["keys"] = known.units.keys / known.units.reads
    return found


def _mark(usage: Usage) -> tuple[int, float, float]:
    return usage.calls, usage.writes, usage.reads


def _writes(usage: Usage, before: tuple[int, float, float], events: int) -> dict[str, Any]:
    return {"write_units": (usage.writes - before[1]) / events, "write_calls": (usage.calls - before[0]) / events}
