"""Events in the last 24 hours, to the minute: hour and minute keys, and packed buckets.

The known design is that of "Counting on dynamodb" (references 001 and 003): every job increments two items, and a
query reads the 24 hours up to the current one and the minutes of the hour before them that are not yet a day old: at
most 83 keys in one BatchGetItem. (The article goes back from the minute a day ago where it has to go forward; corrected
here.)
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from copy import copy
from datetime import timedelta
from typing import Any, Final

from benchmarks.databases import Database, dollars_per_million, since
from benchmarks.designs.known import hour_and_minute
from benchmarks.designs.ours import SHARD
from benchmarks.queue_and_stream import chunks
from benchmarks.workloads import FIRST_JOB, PROVIDERS, Job, jobs
from counters_lambda.counting.batch import Aggregator
from dynamodb_counters import Counters, Event, Window
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import utc
from simulation.memory.memory_client import Usage

# On the hour, when the known design reads most keys.
_EARLY: Final = (FIRST_JOB // 3600 + 27) * 3600
_DAY: Final = timedelta(hours=24)

_JOB: Final = Event("job", pk="JOB#{id}", sk="JOB")
# Longer than in the known design, to look back; it changes no unit.
_JOBS: Final = Window("jobs", _JOB, pk="PROVIDER#{provider}", time="at", retention=timedelta(hours=50))
_PREFIX: Final = "job_event_provider_id_"


class HourAndMinuteKeys:
    """The known design: two items per event, many keys per query."""

    name = "hour_minute_keys"

    def __init__(self, client: Any) -> None:
        self._client = client

    def count(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            for key, update in hour_and_minute(_PREFIX + job.provider, job.second):
                self._client.update_item(TableName=self.name, Key=_key(key), **update)

    def last_day(self, provider: str, now: int) -> int:
        """Add up the hours, and the minutes of the hour before them."""
        minute = now // 60
        names = [f"hour_{now // 3600 - back}" for back in range(24)]
        names += [f"minute_{minute - 24 * 60 + offset}" for offset in range(1, 60 - minute % 60)]
        keys = [_key(f"{_PREFIX}{provider}_{name}") for name in names]
        request = {"Keys": keys, "ProjectionExpression": "#c", "ExpressionAttributeNames": {"#c": "count"}}
        answer = self._client.batch_get_item(RequestItems={self.name: request}, ReturnConsumedCapacity="TOTAL")
        return sum(int(item["count"]["N"]) for item in answer["Responses"][self.name])


def _key(name: str) -> dict[str, dict[str, str]]:
    return {"pk": {"S": name}, "sk": {"S": "-"}}


class PackedBuckets:
    """The design of this project: one item per hour, with a slot per minute."""

    name = "packed_buckets"

    def __init__(self, client: Any) -> None:
        self._now = 0.0  # By a clock at which no stream is old, what is registered waits for no backfill.
        self._sequence = itertools.count(10**20 + 1)
        counted = Table(self.name, client, clock=lambda: self._now)
        self._aggregator = Aggregator(counted, (_JOBS,), quarantine_retention_seconds=86_400)
        self._aggregator.handle({})
        self._counters = Counters(self.name, client=client, clock=lambda: self._now)

    def count(self, jobs: Sequence[Job]) -> None:
        """Fold the jobs' stream records, and commit."""
        self._now = jobs[-1].second
        self._aggregator.handle({"shardId": SHARD, "Records": [self._record(job) for job in jobs]})

    def last_day(self, provider: str, now: int) -> int:
        return int(self._counters.window(_JOBS, provider=provider).last(_DAY, as_of=utc(now)).count)

    def _record(self, job: Job) -> dict[str, Any]:
        image = {"_type": {"S": "job"}, "provider": {"S": job.provider}, "at": {"N": str(job.second)}}
        change = {"SequenceNumber": str(next(self._sequence)), "ApproximateCreationDateTime": job.second}
        return {"eventName": "INSERT", "dynamodb": {**change, "NewImage": image}}


def measure(database: Database, batch: int) -> dict[str, Any]:
    """Count jobs with both designs; query each provider's last day while jobs come, after them, and looking back."""
    results = {}
    for kind in (HourAndMinuteKeys, PackedBuckets):
        database.create(kind.name, "pk", "sk")
        results[kind.name] = _measure(kind(database.client), database.usage, batch)
    return results


def _measure(design: HourAndMinuteKeys | PackedBuckets, usage: Usage, batch: int) -> dict[str, Any]:
    placed = jobs()
    late = (placed[-1].second // 3600 + 1) * 3600
    early_jobs = [job for job in placed if job.second <= _EARLY]
    before, read_units, read_calls, exact = copy(usage), 0.0, 0, True
    for part, now in ((early_jobs, _EARLY), (placed[len(early_jobs) :], late)):
        for some in chunks(part, batch):
            design.count(some)
        counted = copy(usage)
        exact &= _is_exact(design, placed, now)
        difference = since(counted, usage)
        read_units, read_calls = read_units + difference.reads, read_calls + difference.calls
    queries = 2 * len(PROVIDERS)
    return {
        "write_units": (usage.writes - before.writes) / len(placed),
        "read_units": read_units / queries,
        "read_calls": read_calls / queries,
        "dollars_per_million_reads": dollars_per_million(0, read_units / queries),
        "exact": exact,
        "exact_looking_back": _is_exact(design, placed, _EARLY),
    }


def _is_exact(design: HourAndMinuteKeys | PackedBuckets, placed: Sequence[Job], now: int) -> bool:
    """Query all providers; what came within the current minute counts."""
    end = (now // 60 + 1) * 60
    due = Counter(job.provider for job in placed if end - _DAY.total_seconds() <= job.second < end)
    return all(design.last_day(provider, now) == due[provider] for provider in PROVIDERS)
