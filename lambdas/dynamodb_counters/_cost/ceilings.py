"""Ceilings: the most events per second that come through, and the limit that ends them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache, partial
from typing import Final

from dynamodb_counters._cost import functions
from dynamodb_counters._cost.batches import Batches, hottest_share
from dynamodb_counters._cost.counted_items import Counted, updates_of
from dynamodb_counters._cost.functions import ROUND_TRIP
from dynamodb_counters._cost.known_units import KnownDesign
from dynamodb_counters._cost.own_units import count_units, updates_per_batch
from dynamodb_counters._cost.workload_settings import Workload

UNITS_PER_KEY: Final = 1000.0
"""Write units per second that an item or a partition key takes, of the table or of an index.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"""

TRANSACTIONS_PER_SECOND: Final = 92.0
"""Most transactions that change one item; conflicts eat the rest (`benchmarks/scale.py`)."""

_MOST: Final = 1e7
"""Events per second beyond which no limit is looked for."""

_PRECISION: Final = 1.0001


class Limit(Enum):
    """A limit of DynamoDB or Lambda, in words, and the setting that moves it."""

    ITEM = "item of a group", "write_shards of the aggregate"
    EVENT_KEY = "partition key of the events", "more values of pk, or packing"
    PART = "part of the packed events", "parts"
    FLUSHES = "chunks of a part, one by one", "parts, or more events per flush"
    INDEX = "partition key of the leaderboard", "write_shards of the ranking"
    INVOCATION = "invocation of a shard", "memory_size, or more partitions"
    INVOCATION_OF_PART = "invocation of a part's shard", "parts, or memory_size"
    TABLE = "write units of the table", "its quota, or packed events"
    CONCURRENCY = "concurrent executions of the account", "its quota, or batch_size"


@dataclass(frozen=True, slots=True)
class Ceiling:
    events_per_second: float
    limit: Limit


def ceiling(used: Callable[[float], Mapping[Limit, float]]) -> Ceiling | None:
    """The highest rate at which the share `used` of each limit is at most 1; None if there is none."""

    def worst(rate: float) -> tuple[float, Limit]:
        return max(((share, limit) for limit, share in used(rate).items()), key=lambda pair: pair[0])

    low, high = 1e-6, _MOST
    share, limit = worst(high)
    if share <= 1:
        return None
    while high > low * _PRECISION:
        middle = math.sqrt(low * high)
        share, found = worst(middle)
        low, high, limit = (middle, high, limit) if share <= 1 else (low, middle, found)
    return Ceiling(low, limit)


@lru_cache(maxsize=32)
def ceiling_of(load: Workload, known: KnownDesign | None = None) -> Ceiling | None:
    """The ceiling of this design, or of a known one, without the time of its function."""
    used = used_by_ours if known is None else partial(_used_by, known)
    return ceiling(lambda rate: used(replace(load, rate=rate)))


def used_by_ours(load: Workload) -> dict[Limit, float]:
    """The share of each limit that a workload takes whose batches are full: those that are late become so."""
    shards, packing = load.shards(), load.packing()
    feeding, full = load.feeding(shards), _full(load, shards)
    updating = {one: _updating(one, full, feeding) for one in load.counted}
    accepted = load.rate * load.stages(shards)["accept"].writes
    updates = updates_per_batch(load.counted, full, feeding)
    work = functions.counting(full.events, updates, packed=packing is not None)
    executions = load.rate / full.events * work.seconds
    counting = executions / feeding
    counted = {name: stage.writes for name, stage in count_units(load.counted, full, feeding).items()}
    indexed = counted.pop("index")
    found = {
        # An index has a quota of its own.
        Limit.TABLE: (accepted + load.rate * sum(counted.values())) / load.table_units,
        Limit.ITEM: max(updating.values()) / UNITS_PER_KEY,
        Limit.INDEX: load.rate * indexed / UNITS_PER_KEY / load.counted[0].write_shards,
        Limit.CONCURRENCY: executions / load.concurrency,
    }
    if packing is not None:
        putting = math.ceil(packing.chunks) * ROUND_TRIP
        found |= {Limit.PART: accepted / load.parts / UNITS_PER_KEY, Limit.FLUSHES: putting / packing.seconds}
        return found | {Limit.INVOCATION_OF_PART: counting}
    # All buckets of a window lie on the key.
    on_key = sum(updating[one] * (len(one.tiers) or 1) for one in load.counted if not one.scattered)
    return found | {Limit.INVOCATION: counting, **_on_event_key(load, accepted, on_key)}


def _used_by(known: KnownDesign, load: Workload) -> dict[Limit, float]:
    shards = load.shards()
    batches = _full(load, shards)
    stages = known.units(load.event_bytes, load.counted, batches, shards)
    accepted = load.rate * stages["accept"].writes
    hottest = max(_updating_known(one, known, load.rate, batches, shards) for one in load.counted)
    table = load.rate * sum(stage.writes for stage in stages.values()) / load.table_units
    on_key = _on_event_key(load, known.event_writes and accepted, 0.0)
    return {Limit.ITEM: hottest / UNITS_PER_KEY, Limit.TABLE: table, **on_key}


def _on_event_key(load: Workload, accepted: float, updating: float) -> dict[Limit, float]:
    """Groups that are partition keys of events say how these are spread, and lie with them; other keys are many."""
    groups = load.counted[0]
    if groups.scattered:
        return {}
    return {Limit.EVENT_KEY: (accepted * hottest_share(groups.groups, groups.skew) + updating) / UNITS_PER_KEY}


def _full(load: Workload, shards: int) -> Batches:
    """The batches of a shard, as many as the rate fills."""
    events = replace(load, rate=_MOST * shards).batches(shards).events
    return Batches.every(events, events * load.feeding(shards) / load.rate)


def _updating(counted: Counted, batches: Batches, shards: int) -> float:
    """Write units per second of the group with most events; of a window, of one of its present buckets."""
    share = hottest_share(counted.groups, counted.skew)
    share *= 1 if counted.scattered else shards
    touches = -math.expm1(batches.events * math.log1p(-min(share, 1 - 1e-12))) / batches.seconds
    each = updates_of(counted, batches, shards)
    return touches * each.writes / each.number * counted.feeding(shards)


def _updating_known(counted: Counted, known: KnownDesign, rate: float, batches: Batches, shards: int) -> float:
    of_batches = (shards if counted.scattered else 1) / batches.seconds
    touches = of_batches if known.coalesces else rate * hottest_share(counted.groups, counted.skew)
    return touches * (UNITS_PER_KEY / TRANSACTIONS_PER_SECOND if known.transaction else 1)
