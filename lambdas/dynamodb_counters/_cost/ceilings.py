"""Ceilings: the most events per second that come through, and the limit that ends them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Final

from dynamodb_counters._cost import functions
from dynamodb_counters._cost.batches import Batches, hottest_share
from dynamodb_counters._cost.counted_items import Counted, updates_of
from dynamodb_counters._cost.functions import ROUND_TRIP
from dynamodb_counters._cost.known_units import KnownDesign
from dynamodb_counters._cost.own_units import updates_per_batch
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
    FLUSHES = "flushes of a part, one after the other", "parts, or more events per flush"
    INDEX = "partition key of the leaderboard", "write_shards of the ranking"
    INVOCATION = "invocation of a shard", "memory_size, or more partitions"
    INVOCATION_OF_PART = "invocation of a part's shard", "parts, or memory_size"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most events per second, and the limit that they reach."""

    events_per_second: float
    limit: Limit


def ceiling(used: Callable[[float], Mapping[Limit, float]]) -> Ceiling | None:
    """The highest rate at which no limit is exceeded; None if there is none.

    `used` has the share of each limit that so many events per second take.
    """

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


@lru_cache(maxsize=16)
def ceiling_of_ours(load: Workload) -> Ceiling | None:
    """The ceiling of events like these."""
    return ceiling(lambda rate: used_by_ours(replace(load, rate=rate)))


@lru_cache(maxsize=16)
def ceiling_of(known: KnownDesign, load: Workload) -> Ceiling | None:
    """The same of a known design, without the time of its function."""
    return ceiling(lambda rate: _used_by(known, replace(load, rate=rate)))


def used_by_ours(load: Workload) -> dict[Limit, float]:
    """The share of each limit that a workload takes."""
    shards, packing = load.shards(), load.packing()
    feeding, batches, stages = load.feeding(shards), load.batches(shards), load.stages(shards)
    updating = {one: _updating(one, batches, feeding) for one in load.counted}
    accepted = load.rate * stages["accept"].writes
    counting = load.rate / feeding / _most_counted(load, shards)
    found = {
        Limit.ITEM: max(updating.values()) / UNITS_PER_KEY,
        Limit.INDEX: load.rate * stages["index"].writes / UNITS_PER_KEY,
    }
    if packing is not None:
        found |= {Limit.PART: accepted / load.parts / UNITS_PER_KEY, Limit.FLUSHES: ROUND_TRIP / packing.seconds}
        return found | {Limit.INVOCATION_OF_PART: counting}
    # All buckets of a window lie on the key.
    on_key = sum(updating[one] * (len(one.tiers) or 1) for one in load.counted if not one.scattered)
    return found | {Limit.INVOCATION: counting, **_on_event_key(load, accepted, on_key)}


def _used_by(known: KnownDesign, load: Workload) -> dict[Limit, float]:
    shards = load.shards()
    batches = load.batches(shards)
    accepted = load.rate * known.units(load.event_bytes, load.counted, batches, shards)["accept"].writes
    hottest = max(_updating_known(one, known, load.rate, batches, shards) for one in load.counted)
    return {Limit.ITEM: hottest / UNITS_PER_KEY, **_on_event_key(load, known.event_writes and accepted, 0.0)}


def _on_event_key(load: Workload, accepted: float, updating: float) -> dict[Limit, float]:
    """Groups that are partition keys of events say how these are spread, and lie with them; other keys are many."""
    groups = load.counted[0]
    if groups.scattered:
        return {}
    return {Limit.EVENT_KEY: (accepted * hottest_share(groups.groups, groups.skew) + updating) / UNITS_PER_KEY}


def _most_counted(load: Workload, shards: int) -> float:
    """Events per second that a shard counts where one full batch follows another."""
    feeding = load.feeding(shards)
    full = replace(load, rate=_MOST * shards).batches(shards)
    updates = updates_per_batch(load.counted, full, feeding)
    return full.events / functions.counting(full.events, updates, packed=load.packed is not None).seconds


def _updating(counted: Counted, batches: Batches, shards: int) -> float:
    """Write units per second of the group with most events; of a window, of one of its present buckets."""
    share = hottest_share(counted.groups, counted.skew)
    share *= 1 if counted.scattered else shards
    touches = -math.expm1(batches.events * math.log1p(-min(share, 1 - 1e-12))) / batches.seconds
    each = updates_of(counted, batches, shards)
    return touches * each.writes / each.number * (shards if counted.scattered else 1)


def _updating_known(counted: Counted, known: KnownDesign, rate: float, batches: Batches, shards: int) -> float:
    units = 1 + known.transaction
    if known.coalesces:
        return units * (shards if counted.scattered else 1) / batches.seconds
    touches = rate * hottest_share(counted.groups, counted.skew)
    return touches * (UNITS_PER_KEY / TRANSACTIONS_PER_SECOND if known.transaction else units)
