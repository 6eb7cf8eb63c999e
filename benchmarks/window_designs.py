"""Events in the last 24 hours, to the minute: hour and minute keys, and packed buckets.

The known design is that of "Counting on dynamodb" (references 001 and 003): every job increments two items, and a
query reads the 24 hours up to the current one and the minutes of the hour before them that are not yet a day old: at
most 83 keys in one BatchGetItem. (The article goes back from the minute a day ago where it has to go forward; corrected
here.)
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from benchmarks.designs.hour_minute import expiring_increment
from benchmarks.designs.ours import SHARD
from benchmarks.workloads import Job
from dynamodb_counters import Counters, Event, Window
from dynamodb_counters._stream.batch import Aggregator
from dynamodb_counters._table import Table

DAY: Final = timedelta(hours=24)

_JOB: Final = Event("job", pk="JOB#{id}", sk="JOB")
# Longer than in the known design, to look back; it changes no unit.
_JOBS: Final = Window("jobs", _JOB, pk="PROVIDER#{provider}", time="at", retention=timedelta(hours=50))


class HourAndMinuteKeys:
    """The known design: two items per event, many keys per query."""

    name = "hour_minute_keys"

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def count(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            for unit, seconds in (("hour", 3600), ("minute", 60)):
                self._client.update_item(
                    TableName=self._table,
                    Key=self._key(job.provider, unit, job.second // seconds),
                    **expiring_increment(job.second),
                )

    def last_day(self, provider: str, now: int) -> int:
        """Add up the hours, and the minutes of the hour before them."""
        minute = now // 60
        keys = [self._key(provider, "hour", now // 3600 - back) for back in range(24)]
        keys += [self._key(provider, "minute", minute - 24 * 60 + each) for each in range(1, 60 - minute % 60)]
        asked = {"Keys": keys, "ProjectionExpression": "#c", "ExpressionAttributeNames": {"#c": "count"}}
        answer = self._client.batch_get_item(RequestItems={self._table: asked}, ReturnConsumedCapacity="TOTAL")
        return sum(int(item["count"]["N"]) for item in answer["Responses"][self._table])

    @staticmethod
    def _key(provider: str, unit: str, number: int) -> dict[str, dict[str, str]]:
        return {"pk": {"S": f"job_event_provider_id_{provider}_{unit}_{number}"}, "sk": {"S": "-"}}


class PackedBuckets:
    """The design of this project: one item per hour, with a slot per minute."""

    name = "packed_buckets"

    def __init__(self, client: Any, table: str) -> None:
        self._now = 0.0
        self._records = 0
        counted = Table(table, client, clock=lambda: self._now)
        self._aggregator = Aggregator(counted, (_JOBS,), quarantine_retention_seconds=86_400)
        self._counters = Counters(table, client=client, clock=lambda: self._now)

    def count(self, jobs: Sequence[Job]) -> None:
        """Fold the jobs' stream records, and commit."""
        self._now = jobs[-1].second
        self._aggregator.handle({"shardId": SHARD, "Records": [self._record(job) for job in jobs]})

    def last_day(self, provider: str, now: int) -> int:
        as_of = datetime.fromtimestamp(now, UTC)
        return int(self._counters.window(_JOBS, {"provider": provider}, last=DAY, as_of=as_of).count)

    def _record(self, job: Job) -> dict[str, Any]:
        self._records += 1
        image = {"_type": {"S": "job"}, "provider": {"S": job.provider}, "at": {"N": str(job.second)}}
        change = {"SequenceNumber": str(10**20 + self._records), "ApproximateCreationDateTime": job.second}
        return {"eventName": "INSERT", "dynamodb": {**change, "NewImage": image}}


WindowDesign: TypeAlias = HourAndMinuteKeys | PackedBuckets
