"""What it costs when a committed batch is delivered again, and a day of the stream from its start."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from benchmarks.partitions import PAGES, World

REPLAYED_SHARDS: Final = 10
_MINUTES: Final = 5
_VIEWS: Final = 10
"""Of each shard in so many minutes."""

_PAGES: Final = 200


def measure(hours: int = 24) -> dict[str, Any]:
    """Redeliver a batch that was large enough to move its shard's checkpoint, one that was not, and a stream."""
    return {"200_items": _batch(200), "20_items": _batch(20), f"{hours}_hours": _replay(hours)}


def _batch(items: int) -> dict[str, Any]:
    """Deliver a batch again to a process that knows nothing of it, minutes later."""
    world = World(1, _nothing, declared=(PAGES,), keeps_events=True)
    for index in range(items):
        world.view(0, str(index))
    world.deliver()
    world.clock.advance(120)
    [(partition, event)] = world.delivered
    return _again(world, lambda: world.invoke(partition, event))


def _replay(hours: int) -> dict[str, Any]:
    """Count the views of so many hours, then create the mapping anew, which starts at the stream's first record."""
    world, dice = World(REPLAYED_SHARDS, _nothing, declared=(PAGES,), keeps_events=True), random.Random(1)
    for _ in range(hours * 60 // _MINUTES):
        world.clock.advance(_MINUTES * 60)
        for partition in range(REPLAYED_SHARDS):
            for _ in range(_VIEWS):
                world.view(partition, str(dice.randrange(_PAGES)))
        world.deliver()
    return _again(world, lambda: world.stream.replay(list(world.delivered), world.invoke))


def _again(world: World, redeliver: Callable[[], object]) -> dict[str, Any]:
    """What a second delivery consumes, and how many counts are wrong after it."""
    world.restart()
    items = {item["pk"]["S"]: item for item in world.memory.items() if "views" in item}
    seen = len(world.delivered)
    usage = world.memory.usage
    writes, reads = usage.writes, usage.reads
    redeliver()
    after = {item["pk"]["S"]: item for item in world.memory.items() if "views" in item}
    events = [event for _, event in world.delivered[: seen or 1]]
    return {
        "records": sum(
            "NewImage" in r["dynamodb"] and r["eventName"] == "INSERT" for e in events for r in e["Records"]
        ),
        "shards": len({event["shardId"] for event in events}),
        "items": len(items),
        "write_units": usage.writes - writes,
        "read_units": usage.reads - reads,
        "wrong": sum(after[pk]["views"] != {"N": str(world.viewed[pk])} for pk in after),
    }


def _nothing(_pk: str, _sk: str) -> None:
    return None
