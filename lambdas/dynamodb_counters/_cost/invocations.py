"""Invocations of the aggregator per second: by new events, by its own writes, and at the end of each window."""

from __future__ import annotations

import math
from typing import NamedTuple

from dynamodb_counters._assumptions import FRESH
from dynamodb_counters._cost.batches import TUMBLING_SECONDS
from dynamodb_counters._cost.own_units import checkpoint_writes, updates_per_batch
from dynamodb_counters._cost.workload_settings import Workload


class Invocations(NamedTuple):
    """Those with new events, echoes (with nothing but what others have written), and the last ones of windows."""

    events: float
    echoes: float
    windows: float

    @property
    def runs(self) -> float:
        return sum(self)

    def looks(self, shards: int) -> float:
        """Looks at a shard's checkpoint and at the deployments: a process relies on them for a while."""
        # An echo that comes to the batch's own shard finds what that batch has read.
        each = (self.events + self.echoes - self.events / shards) / shards
        return shards * each / (1 + each * FRESH)


def invocations(load: Workload) -> Invocations:
    """Invocations of a steady rate: changes come back, to a batch that gathers events or, where none does, at once.

    >>> from dynamodb_counters._cost.counted_items import Counted
    >>> [round(invocations(Workload(rate, (Counted(50),))).runs / rate, 2) for rate in (0.01, 1, 10)]
    [2.83, 1.62, 0.6]
    """
    shards = load.shards()
    feeding, batches = load.feeding(shards), load.batches(shards)
    events = feeding / batches.seconds
    updates = updates_per_batch(load.counted, batches, feeding)
    moved = checkpoint_writes(updates, batches)
    if any(one.scattered for one in load.counted):
        gathers = 1 - (1.0 if load.packed is None else load.packed) / batches.events
        # None does in the batch's own shard.
        echoes = events * _reached(shards, updates + moved) * (1 - gathers * (feeding - 1) / shards)
    else:
        echoes = events * _reached(shards, 1 + moved)
    return Invocations(events, echoes, min(events + echoes, shards / TUMBLING_SECONDS))


def _reached(shards: int, records: float) -> float:
    """Shards that so many records come to: one for the first, and others by chance."""
    return shards - (shards - 1) * math.exp(-max(0.0, records - 1) / shards)
