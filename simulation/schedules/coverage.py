"""Coverage of a schedule, by which a soak shows what it has tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class Outcome:
    """Outcome of a schedule: counts that are not exact, invocations, records delivered, faults by kind.

    `accepts` counts the events of every call of writers of packed events, retractions too. `reached` counts what it
    came across by the names of `coverage`; `paused` is the longest that an invocation without a fault has waited
    between two tries.
    """

    seed: int
    wrong: list[str]
    deliveries: int
    records: int
    faults: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    paused: float = 0.0
    accepts: int = 0


class WrongCountError(AssertionError):
    """A schedule ended with wrong counts; the message says how to run it again."""

    def __init__(self, outcome: Outcome, engine: str) -> None:
        lines = "\n  ".join(outcome.wrong)
        again = f"python -m simulation.soak --engine {engine} --seed {outcome.seed} --schedules 1"
        super().__init__(f"seed {outcome.seed}: {len(outcome.wrong)} wrong\n  {lines}\nrun it again: {again}")
