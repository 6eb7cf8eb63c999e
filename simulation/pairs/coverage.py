"""Coverage of a schedule, by which a soak shows what it has tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
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
ROLLED_OVER: Final = "all shards replaced"
STRAGGLER: Final = "invocation of a deployment that is not the last"
UNREADABLE: Final = "invocation that cannot read a definition"
MENDED: Final = "batch of which some is aside, delivered to code that is mended"
SPOILED: Final = "bookkeeping spoiled"
CROWDED: Final = "nine in ten calls refused for a while"
TIMED_OUT: Final = "timeout, invocation runs on"
REWOUND: Final = "redelivery from an earlier position"
SPLIT: Final = "shard split"
ANSWERED: Final = "packed: answered "


def of_records(records: Iterable[tuple[str, Record]]) -> Counter[str]:
    """Return steps of checkpoints and watermarks in the stream."""
    counts: Counter[str] = Counter()
    for _, record in records:
        old, new = record["dynamodb"].get("OldImage") or {}, record["dynamodb"].get("NewImage")
        if new is None:
            continue
        if "applied_through" in new:
            counts[MOVED] += old.get("applied_through") != new["applied_through"]
        else:
            counts[PRUNED] += sum(name.startswith(WATERMARK_PREFIX) and name not in new for name in old)
    return +counts


@dataclass(slots=True)
class Outcome:
    """Outcome of a schedule: what is wrong, invocations, records delivered, faults by kind.

    `reached` counts what it came across by the names of this module, `pairs` the features that met, of those that
    `happened`.
    """

    seed: int
    wrong: list[str]
    deliveries: int = 0
    records: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)


class WrongCountError(AssertionError):
    """A schedule ended with wrong counts; the message says how to run it again."""

    def __init__(self, outcome: Outcome, engine: str, without: Collection[str] = (), how: str = "") -> None:
        lines = "\n  ".join(text[:600] for text in outcome.wrong[:12])
        how += f" --without {','.join(sorted(without))}" if without else ""
        again = f"python -m simulation.pairs --engine {engine} --seed {outcome.seed} --count 1{how}"
        super().__init__(f"seed {outcome.seed}: {len(outcome.wrong)} wrong\n  {lines}\nrun it again: {again}")
