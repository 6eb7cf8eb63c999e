"""A hot item that the shards of several partitions feed, each of which is replaced every four hours."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from benchmarks.databases import TABLE, memory
from benchmarks.designs.ours import VIEWS
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._items.table_schema import WATERMARK_PREFIX
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import DAY, HOUR, MINUTE

_LIFETIME: Final = 4 * HOUR
_STEP: Final = 5 * MINUTE
"""From a batch of a shard to its next one; every third ends a tumbling window."""

_IMAGE: Final = {"_type": {"S": "view"}, "url": {"S": "hot"}}


def measure(days: float) -> dict[str, dict[str, float]]:
    """The item's write units per update, and the most watermarks that it has, by partitions."""
    return {str(partitions): _measure(partitions, int(days * DAY / _STEP)) for partitions in (1, 4, 16, 64)}


def _measure(partitions: int, steps: int) -> dict[str, float]:
    database, updates, most = memory(), 0, 0
    table = Table(TABLE, database.client, clock=database.clock)
    aggregator = Aggregator(table, (VIEWS,), quarantine_retention_seconds=DAY)
    feeds = [_feed(aggregator, table, number * _LIFETIME / partitions) for number in range(partitions)]
    for _ in range(steps):
        updates += sum(map(next, feeds))
        database.clock.advance(_STEP)
        [item] = (item for item in database.items(TABLE) if item["pk"]["S"] == "URL#hot")
        most = max(most, sum(name.startswith(WATERMARK_PREFIX) for name in item))
    return {"units": database.usage.items[TABLE, "URL#hot", "STATISTICS"] / updates, "watermarks": most}


def _feed(aggregator: Aggregator, table: Table, age: float) -> Iterator[int]:
    """Updates by each batch of a partition, whose first shard has that age; an invocation ends within a minute."""
    dice, end = random.Random(age), table.clock() - age
    while True:
        end, sequence, batches = end + _LIFETIME, 10**22 + dice.randrange(10**21), 0
        event: dict[str, Any] = {"shardId": f"shardId-{int(end * 1000):020d}-{dice.getrandbits(32):08x}"}
        while table.clock() < end:
            sequence, batches = sequence + dice.randrange(1, 10**18), batches + 1
            change = {"NewImage": _IMAGE, "SequenceNumber": str(sequence), "ApproximateCreationDateTime": table.clock()}
            batch = {**event, "Records": [{"eventName": "INSERT", "dynamodb": change}]}
            report = aggregator.handle(batch, lambda: MINUTE)
            event["state"] = report.state(event)
            yield report.updated
            if batches % 3 == 0 or table.clock() >= end:
                aggregator.handle({**event, "Records": [], "isFinalInvokeForWindow": True}, lambda: MINUTE)
