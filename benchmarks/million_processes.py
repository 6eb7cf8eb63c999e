"""The two processes of `benchmarks.million`: one accepts events in order, one counts what the stream brings.

The first notes after every few calls how far it is; who starts it anew has it repeat what it had not noted.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from benchmarks.best_times import peak_bytes
from benchmarks.databases import EngineDatabase
from dynamodb_counters import Aggregate, Count, Event, Packed
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept_many
from dynamodb_counters.testing._dynamodb.capacity import Usage
from dynamodb_counters.testing._dynamodb.stream_source import Record
from simulation.delivery.stream_api import ApiSource, lambda_record
from simulation.engines import connect

RATE: Final = 1_000
"""Events per second of their own time, 10 seconds of which are a bucket."""

PER_CALL: Final = 1_000
CALLS_PER_NOTE: Final = 5
_BLOCK: Final = 1_000
PAGES: Final = 200
_CLIENTS: Final = 50_000
_START: Final = datetime(2026, 11, 20, tzinfo=UTC)
TABLE_NAME: Final = "counters"
_MOST_RECORDS: Final = 1_000
_BATCHING_WINDOW: Final = 0.5

VIEW: Final = Event(
    "view",
    pk="URL#{url}",
    sk="T#{time}#CID#{clientId}",
    packed=Packed("time", bucket=timedelta(seconds=10), future_tolerance=None),
)
VIEWS: Final = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
SITE: Final = Aggregate("site", VIEW, pk="SITE", sk="STATISTICS", measures={"site_views": Count()})

Noted = Mapping[str, float]
"""What a process has noted of itself."""


def events(first: int, last: int) -> Iterator[dict[str, str]]:
    """The events of a range of numbers, always the same."""
    weights = list(accumulate(1 / rank for rank in range(1, PAGES + 1)))
    for block in range(first // _BLOCK, -(-last // _BLOCK)):
        dice = random.Random(block)
        pages = dice.choices(range(PAGES), cum_weights=weights, k=_BLOCK)
        for number, page in enumerate(pages, start=block * _BLOCK):
            client = f"client{number % RATE}-{dice.randrange(_CLIENTS)}"
            if first <= number < last:
                time_ = (_START + timedelta(seconds=number // RATE)).isoformat()
                yield {"url": f"/page-{page}", "time": time_, "clientId": client}


def accept(endpoint: str, folder: Path, number: int) -> None:
    """Accept events from where the last process noted that it was."""
    engine, notes = connect("dynamodb_local", endpoint), folder / "accept"
    table, before, repeated = Table(TABLE_NAME, engine.client), read_notes(notes), 0
    with EngineDatabase(engine) as database:
        for call, start in enumerate(range(int(before.get("events", 0)), number, PER_CALL), start=1):
            part = list(events(start, min(start + PER_CALL, number)))
            statuses = Counter(str(outcome.status) for outcome in accept_many(table, VIEW, part))
            assert set(statuses) <= {"accepted", "duplicate"}, statuses
            repeated += statuses["duplicate"]
            done = start + len(part)
            if call % CALLS_PER_NOTE == 0 or done == number:
                more = {"events": done, "repeated": before.get("repeated", 0) + repeated}
                write_notes(notes, more | _taken(database.usage, before))


def count(endpoint: str, folder: Path) -> None:
    """Count what the stream brings, from its beginning, until it is ended."""
    engine, notes = connect("dynamodb_local", endpoint), folder / "count"
    arn = engine.client.describe_table(TableName=TABLE_NAME)["Table"]["LatestStreamArn"]
    before = read_notes(notes)
    aggregator = Aggregator(Table(TABLE_NAME, engine.client), (VIEWS, SITE), quarantine_retention_seconds=86_400)
    with EngineDatabase(engine) as database:
        for shard, records in _batches(engine.streams, arn):
            if records:
                report = aggregator.handle({"shardId": shard, "Records": records})
                assert not report.quarantined
            write_notes(notes, _taken(database.usage, before))
            if len(records) < _MOST_RECORDS:
                time.sleep(_BATCHING_WINDOW)


def _batches(streams: Any, arn: str) -> Iterator[tuple[str, list[Record]]]:
    """The next records of each shard in turn, for ever; it keeps none, so that the memory is the aggregator's."""
    source, iterators = ApiSource(streams, arn), dict[str, str | None]()
    while True:
        for shard in source.shards():
            if shard.id not in iterators:
                started = streams.get_shard_iterator(StreamArn=arn, ShardId=shard.id, ShardIteratorType="TRIM_HORIZON")
                iterators[shard.id] = started["ShardIterator"]
            if iterators[shard.id] is not None:
                answer = streams.get_records(ShardIterator=iterators[shard.id], Limit=_MOST_RECORDS)
                iterators[shard.id] = answer.get("NextShardIterator")
                yield shard.id, [lambda_record(dict(record), arn) for record in answer["Records"]]


def _taken(usage: Usage, before: Noted) -> dict[str, float]:
    """What this process and those before it have taken."""
    units = {"write_units": usage.writes, "read_units": usage.reads}
    taken = {name: before.get(name, 0) + each for name, each in units.items()}
    return taken | {"peak_bytes": max(before.get("peak_bytes", 0), peak_bytes())}


def read_notes(notes: Path) -> Noted:
    found: Noted = json.loads(notes.read_text()) if notes.exists() else {}
    return found


def write_notes(notes: Path, noted: Noted) -> None:
    # In one step: whoever is killed leaves the old notes or the new ones.
    new = notes.with_suffix(".new")
    new.write_text(json.dumps(noted))
    new.replace(notes)
