"""A hot item that the shards of several partitions feed, each of which is replaced every four hours."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from benchmarks.databases import TABLE, memory
from benchmarks.designs.ours import VIEWS
from counters_lambda.counting.batch import Aggregator
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import DAY, HOUR, MINUTE
from dynamodb_counters.exactly_once import WATERMARK_PREFIX, ExactlyOnce

_LIFETIME: Final = 4 * HOUR
_STEP: Final = 5 * MINUTE  # From a batch of a shard to its next one; every third ends a tumbling window.
_Handle: TypeAlias = Callable[[Any], Any]
_IMAGE: Final = {"_type": {"S": "view"}, "url": {"S": "hot"}}


def measure(days: float) -> dict[str, dict[str, float]]:
    """Return the item's write units per update and its most watermarks, by partitions; units by the kernel."""
    steps = int(days * DAY / _STEP)
    return {
        str(partitions): _measure(partitions, steps, _aggregator)
        | {"kernel": _measure(partitions, steps, _kernel)["units"]}
        for partitions in (1, 4, 16, 64)
    }


def _aggregator(table: Table) -> _Handle:
    aggregator = Aggregator(table, (VIEWS,), quarantine_retention_seconds=DAY)
    return lambda event: aggregator.handle(event, lambda: MINUTE).state(event)


def _kernel(table: Table) -> _Handle:
    counted = ExactlyOnce(TABLE, client=table.client, clock=table.clock)
    return lambda event: counted.handle(event, lambda _: [(("URL#hot", "STATISTICS"), {"views": 1})])["state"]


def _measure(partitions: int, steps: int, consumer: Callable[[Table], _Handle]) -> dict[str, float]:
    database, most = memory(), 0
    table = Table(TABLE, database.client, clock=database.clock)
    handle = consumer(table)
    feeds = [_feed(handle, table, number * _LIFETIME / partitions) for number in range(partitions)]
    for _ in range(steps):
        [*map(next, feeds)]
        database.clock.advance(_STEP)
        [item] = (item for item in database.items(TABLE) if item["pk"]["S"] == "URL#hot")
        most = max(most, sum(name.startswith(WATERMARK_PREFIX) for name in item))
    return {"units": database.usage.items[TABLE, "URL#hot", "STATISTICS"] / (steps * partitions), "watermarks": most}


def _feed(handle: _Handle, table: Table, age: float) -> Iterator[None]:
    """Handle each batch of a partition, whose first shard has that age; an invocation ends within a minute."""
    dice, end = random.Random(age), table.clock() - age
    while True:
        end, sequence, batches = end + _LIFETIME, 10**22 + dice.randrange(10**21), 0
        event: dict[str, Any] = {"shardId": f"shardId-{int(end * 1000):020d}-{dice.getrandbits(32):08x}"}
        while table.clock() < end:
            sequence, batches = sequence + dice.randrange(1, 10**18), batches + 1
            change = {"NewImage": _IMAGE, "SequenceNumber": str(sequence), "ApproximateCreationDateTime": table.clock()}
            record = {"eventName": "INSERT", "eventSourceARN": "stream", "dynamodb": change}
            event["state"] = handle({**event, "Records": [record]})
            yield
            if batches % 3 == 0 or table.clock() >= end:
                handle({**event, "Records": [], "isFinalInvokeForWindow": True})
                event["state"] = {}
