"""Jobs per provider in the last 24 hours: hour and minute keys against packed hour buckets, side by side.

The known design is that of "Counting on dynamodb" (the project's references 001 and 003): every job increments two
items, ``job_event_provider_id_<n>_hour_<h>`` and ``…_minute_<m>``, and a question reads the 24 hours up to the current
one and the minutes of the hour before them that are not yet a day old: at most 83 keys in one BatchGetItem. Jobs are
generated as there: 20 to 100 in each of 37 hours, spread over three providers.

The same jobs go to both designs in the same batches, in the order of time, and both are asked the same question for
each provider, 27 hours after the first job and after the last. Then both are asked about hour 27 once more: only packed
buckets can tell what was, as the known design counts its current hour whole. Printed too is what the article's own
arithmetic gives: it goes back from the minute a day ago where it would have to go forward.

Run: ``python -m benchmarks.windows_reference [--engine dynamodb_local|moto] [--batch 10] [--seed 1]``
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dynamodb_counters import Counters, Event, Window
from dynamodb_counters.aggregator import Aggregator
from dynamodb_counters.store.table import Table
from tests.engines import Engine, dynamodb_local, moto
from tests.engines.tables import create_table

_HOURS: Final = 37
_ASKED_AFTER: Final = 27 * 3600
# So far ahead that no engine's TTL deletes what the past has left.
_FIRST: Final = int(datetime(2096, 11, 18, 9, 23, 45, tzinfo=UTC).timestamp())
_PROVIDERS: Final = ("1", "2", "3")
_RETENTION: Final = timedelta(hours=25)
_DAY_MINUTES: Final = 24 * 60

_JOB = Event("job", pk="JOB#{id}", sk="JOB")
# Kept for longer than the known design does, so that the past can be asked about; it changes no unit.
_JOBS = Window("jobs", _JOB, pk="PROVIDER#{provider}", time="at", retention=_RETENTION * 2)


@dataclass(frozen=True, slots=True)
class Job:
    """A job that was placed.

    Parameters
    ----------
    second : int
        When, since 1970.
    provider : str
        For whom.
    """

    second: int
    provider: str


@dataclass(slots=True)
class Units:
    """What a design has consumed.

    Parameters
    ----------
    writes, write_units : float
        Calls that write, and what they consumed.
    reads, keys, read_units : float
        Calls that read, items they asked for, and what they consumed.
    """

    writes: int = 0
    write_units: float = 0.0
    reads: int = 0
    keys: int = 0
    read_units: float = 0.0


@dataclass
class HourAndMinuteKeys:
    """The known design: two items an event, many keys a question.

    Parameters
    ----------
    client : DynamoDBClient
        Client of the engine.
    table : str
        A table of its own.
    """

    client: Any
    table: str
    units: Units = field(default_factory=Units)

    def count(self, jobs: Sequence[Job]) -> None:
        """Count a batch."""
        for job in jobs:
            for unit, seconds in (("hour", 3600), ("minute", 60)):
                answer = self.client.update_item(
                    TableName=self.table,
                    Key=self._key(job.provider, unit, job.second // seconds),
                    UpdateExpression="SET #c = if_not_exists(#c, :zero) + :one, #t = if_not_exists(#t, :ttl)",
                    ExpressionAttributeNames={"#c": "count", "#t": "ttl"},
                    ExpressionAttributeValues={
                        ":zero": {"N": "0"},
                        ":one": {"N": "1"},
                        ":ttl": {"N": str(job.second + int(_RETENTION.total_seconds()))},
                    },
                    ReturnConsumedCapacity="TOTAL",
                )
                self.units.writes += 1
                self.units.write_units += answer["ConsumedCapacity"]["CapacityUnits"]

    def last_day(self, provider: str, now: int, direction: int = 1) -> int:
        """Count the last 24 hours; with a direction of -1 by the article's own arithmetic."""
        minute = now // 60
        hours = [self._key(provider, "hour", now // 3600 - back) for back in range(24)]
        left = range(1, 60 - minute % 60)
        minutes = [self._key(provider, "minute", minute - _DAY_MINUTES + direction * each) for each in left]
        answer = self.client.batch_get_item(
            RequestItems={
                self.table: {
                    "Keys": hours + minutes,
                    "ProjectionExpression": "#c",
                    "ExpressionAttributeNames": {"#c": "count"},
                }
            },
            ReturnConsumedCapacity="TOTAL",
        )
        self.units.reads += 1
        self.units.keys += len(hours) + len(minutes)
        self.units.read_units += sum(each["CapacityUnits"] for each in answer["ConsumedCapacity"])
        return sum(int(item["count"]["N"]) for item in answer["Responses"][self.table])

    @staticmethod
    def _key(provider: str, unit: str, number: int) -> dict[str, dict[str, str]]:
        return {"pk": {"S": f"job_event_provider_id_{provider}_{unit}_{number}"}, "sk": {"S": "-"}}


class PackedBuckets:
    """The design of this project: one item an hour, with a slot a minute.

    Parameters
    ----------
    client : DynamoDBClient
        Client of the engine.
    table : str
        A table of its own.
    """

    def __init__(self, client: Any, table: str) -> None:
        self.units = Units()
        self._now = 0.0
        self._place = 0
        self._is_asked = False
        store = Table(table, client, clock=lambda: self._now)
        self._aggregator = Aggregator(store, (_JOBS,), quarantine_retention_seconds=86_400)
        self._counters = Counters(table, client=client, clock=lambda: self._now)
        client.meta.events.register("before-parameter-build.dynamodb.Query", self._ask)
        client.meta.events.register("after-call.dynamodb.Query", self._note)

    def count(self, jobs: Sequence[Job]) -> None:
        """Count a batch."""
        self._now = jobs[-1].second
        records = []
        for job in jobs:
            self._place += 1
            image = {"_type": {"S": "job"}, "provider": {"S": job.provider}, "at": {"N": str(job.second)}}
            change = {"SequenceNumber": str(10**20 + self._place), "ApproximateCreationDateTime": job.second}
            records.append({"dynamodb": {**change, "NewImage": image}})
        report = self._aggregator.handle({"shardId": "shardId-00000001414576573621-f55eea83", "Records": records})
        self.units.writes += report.updated
        self.units.write_units += report.write_units

    def last_day(self, provider: str, now: int) -> int:
        """Count the last 24 hours."""
        as_of = datetime.fromtimestamp(now, UTC)
        self._is_asked = True
        try:
            return int(
                self._counters.window(_JOBS, {"provider": provider}, last=timedelta(hours=24), as_of=as_of).count
            )
        finally:
            self._is_asked = False

    def _ask(self, params: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def _note(self, parsed: dict[str, Any], **_: Any) -> None:
        if not self._is_asked:  # The aggregator looks into the quarantine, once.
            return
        self.units.reads += 1
        self.units.keys += len(parsed["Items"])
        self.units.read_units += parsed["ConsumedCapacity"]["CapacityUnits"]


def generate(seed: int) -> list[Job]:
    """Generate jobs as the references do.

    Parameters
    ----------
    seed : int
        Same seed, same jobs.

    Returns
    -------
    list of Job
        In the order of time.
    """
    dice = random.Random(seed)
    return sorted(
        (
            Job(_FIRST + hour * 3600 + dice.randrange(3600), dice.choice(_PROVIDERS))
            for hour in range(_HOURS)
            for _ in range(dice.randint(20, 100))
        ),
        key=lambda job: job.second,
    )


def run(engine: Engine, batch: int, seed: int) -> bool:
    """Count the jobs with both designs and print what they answer and cost.

    Parameters
    ----------
    engine : Engine
        Where.
    batch : int
        Records a batch.
    seed : int
        Which jobs.

    Returns
    -------
    bool
        Whether all answers are right.
    """
    jobs = generate(seed)
    for name in ("keys", "buckets"):
        create_table(engine.client, f"benchmark-{name}")
    known, packed = (
        HourAndMinuteKeys(engine.client, "benchmark-keys"),
        PackedBuckets(engine.client, "benchmark-buckets"),
    )
    print(f"{len(jobs)} jobs in {_HOURS} hours, batches of {batch}, seed {seed}, {engine.name}\n")
    print(f"{'asked':<24}{'provider':>9}{'counted':>9}{'keys':>7}{'buckets':>9}{'as printed':>12}")
    asked_at = _FIRST + _ASKED_AFTER
    early, late = [job for job in jobs if job.second <= asked_at], [job for job in jobs if job.second > asked_at]
    right = True
    for part, moment, label in ((early, asked_at, "after 27 h"), (late, jobs[-1].second, "after the last job")):
        for start in range(0, len(part), batch):
            known.count(part[start : start + batch])
            packed.count(part[start : start + batch])
        right &= _ask(label, jobs, known, packed, moment, live=True)
    right &= _ask("27 h, looking back", jobs, known, packed, asked_at, live=False)
    _print_units(len(jobs), known.units, packed.units)
    return right


def _ask(
    label: str, jobs: Sequence[Job], known: HourAndMinuteKeys, packed: PackedBuckets, now: int, *, live: bool
) -> bool:
    end = (now // 60 + 1) * 60
    right = True
    for provider in _PROVIDERS:
        counted = sum(
            job.provider == provider and end - 86_400 <= job.second < min(end, now + 1 if live else end) for job in jobs
        )
        keys, buckets = known.last_day(provider, now), packed.last_day(provider, now)
        printed = _unmetered(known, provider, now)
        print(f"{label:<24}{provider:>9}{counted:>9}{keys:>7}{buckets:>9}{printed:>12}")
        right &= buckets == counted and (keys == counted or not live)
    return right


def _unmetered(known: HourAndMinuteKeys, provider: str, now: int) -> int:
    kept, known.units = known.units, Units()
    try:
        return known.last_day(provider, now, -1)
    finally:
        known.units = kept


def _print_units(jobs: int, known: Units, packed: Units) -> None:
    print(f"\n{'':<24}{'hour and minute keys':>22}{'packed buckets':>16}")
    for label, one, two in (
        ("updates", known.writes, packed.writes),
        ("write units", known.write_units, packed.write_units),
        ("write units a job", known.write_units / jobs, packed.write_units / jobs),
        ("read calls", known.reads, packed.reads),
        ("items asked for, a call", known.keys / known.reads, packed.keys / packed.reads),
        ("read units a question", known.read_units / known.reads, packed.read_units / packed.reads),
    ):
        print(f"{label:<24}{one:>22.4g}{two:>16.4g}")


@contextmanager
def _engine(name: str) -> Iterator[Engine]:
    with dynamodb_local.start() if name == "dynamodb_local" else moto.start() as engine:
        yield engine


def main() -> None:
    """Run the benchmark; exits with 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--engine", choices=("dynamodb_local", "moto"), default="dynamodb_local")
    parser.add_argument("--batch", type=int, default=10, help="records a batch (the known design's: 10)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with _engine(arguments.engine) as engine:
        raise SystemExit(0 if run(engine, arguments.batch, arguments.seed) else 1)


if __name__ == "__main__":
    main()
