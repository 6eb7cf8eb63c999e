"""What it costs when a committed batch is delivered again, and a day of the stream from its start."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from benchmarks.partitioned_table import PAGES, PartitionedTable

REPLAYED_SHARDS: Final = 10
_MINUTES: Final = 5
_VIEWS: Final = 10
"""Of each shard in so many minutes."""

_PAGES: Final = 200


def measure(hours: int = 24) -> dict[str, Any]:
    """Redeliver a batch that was large enough to move its shard's checkpoint, one that was not, and a stream."""
    return {
        "200_items": _batch(200, new_process=True),
        "20_items": _batch(20, new_process=False),
        "20_items_new_process": _batch(20, new_process=True),
        f"{hours}_hours_of_{REPLAYED_SHARDS}_partitions": _replay(hours),
    }


def _batch(items: int, *, new_process: bool) -> dict[str, Any]:
    """Deliver a batch again two minutes later; a new process knows nothing of its shard."""
    table = PartitionedTable(1, declared=(PAGES,), keeps_events=True)
    for index in range(items):
        table.view(0, str(index))
    table.deliver()
    table.clock.advance(120)
    if new_process:
        table.restart()
    [(partition, event)] = table.delivered
    return _again(table, lambda: table.invoke(partition, event))


def _replay(hours: int) -> dict[str, Any]:
    """Count the views of so many hours, then create the mapping anew, which starts at the stream's first record."""
    table, dice = PartitionedTable(REPLAYED_SHARDS, declared=(PAGES,), keeps_events=True), random.Random(1)
    for _ in range(hours * 60 // _MINUTES):
        table.clock.advance(_MINUTES * 60)
        for partition in range(REPLAYED_SHARDS):
            for _ in range(_VIEWS):
                table.view(partition, str(dice.randrange(_PAGES)))
        table.deliver()
    table.restart()
    return _again(table, lambda: table.stream.replay(list(table.delivered), table.invoke))


def _again(table: PartitionedTable, redeliver: Callable[[], object]) -> dict[str, Any]:
    """What a second delivery consumes, and how many counts are wrong after it."""
    items = {item["pk"]["S"]: item for item in table.memory.items() if "views" in item}
    seen = len(table.delivered)
    usage = table.memory.usage
    writes, reads = usage.writes, usage.reads
    redeliver()
    after = {item["pk"]["S"]: item for item in table.memory.items() if "views" in item}
    events = [event for _, event in table.delivered[: seen or 1]]
    return {
        "records": sum(
            "NewImage" in r["dynamodb"] and r["eventName"] == "INSERT" for e in events for r in e["Records"]
        ),
        "shards": len({event["shardId"] for event in events}),
        "items": len(items),
        "write_units": usage.writes - writes,
        "read_units": usage.reads - reads,
        "wrong": sum(after[pk]["views"] != {"N": str(table.views[pk.removeprefix("PAGE#")])} for pk in after),
    }
