"""Coverage of a schedule, by which a soak shows what it has tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from dynamodb_counters.exactly_once import WATERMARK_PREFIX
from simulation.memory.memory_stream import Record

MOVED: Final = "checkpoint moved"
PRUNED: Final = "watermark pruned"
DROPPED: Final = "record dropped by checkpoint"
FINAL: Final = "final invocation of a window"
OUTLIVED: Final = "zombie outlived its retry"
HOURS: Final = "batch acknowledged after hours of retries"
REPLAYED: Final = "mapping re-created"
DEPLOYED: Final = "deployment"
ROLLED_OVER: Final = "all shards replaced"
REDECLARED: Final = "deployment that declares something else"
STRAGGLER: Final = "invocation of a deployment that is not the last"
LATER: Final = "name registered later"
UNREADABLE: Final = "invocation that cannot read a definition"
PARTLY: Final = "image that some declarations count, others cannot"
MENDED: Final = "batch of which some is aside, delivered to code that is mended"
AGAIN: Final = "redriven image in quarantine again"
SPOILED: Final = "bookkeeping spoiled"
CROWDED: Final = "nine in ten calls refused for a while"
TIMED_OUT: Final = "timeout, invocation runs on"
REWOUND: Final = "redelivery from an earlier position"
SPLIT: Final = "shard split"
FLOOD: Final = "flood of malformed events"
ANSWERED: Final = "packed: answered "
CHUNKS: Final = "packed: chunk"
TAKEN_BACK: Final = "packed: values taken back"
EXPIRED_EVENTS: Final = "packed: event expired"
UNANSWERED: Final = "packed: event whose writer died or failed"


def of_records(records: Iterable[tuple[str, Record]]) -> Counter[str]:
    """Steps of checkpoints and watermarks in the stream."""
    found: Counter[str] = Counter()
    for _, record in records:
        old, new = record["dynamodb"].get("OldImage") or {}, record["dynamodb"].get("NewImage")
        if new is None:
            continue
        if "applied_through" in new:
            found[MOVED] += old.get("applied_through") != new["applied_through"]
        else:
            found[PRUNED] += sum(name.startswith(WATERMARK_PREFIX) and name not in new for name in old)
    return +found
