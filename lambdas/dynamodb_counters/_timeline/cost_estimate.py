"""Costs of a window, to write and to read, and the tiers that cost least."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final

from dynamodb_counters._timeline.tiers import TIERS, Tier
from dynamodb_counters._timeline.times import HOUR

MAX_BUCKETS_PER_QUERY: Final = 40
"""Add a coarser tier rather than read more: 40 full buckets are about 25 KB, 3.5 read units."""

QUERY_OVERHEAD: Final = 0.5
"""Read units that the thread and connection of one more Query are taken to cost."""

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
_READ_BYTES: Final = 4096
_WRITE_BYTES: Final = 1024

# Measured on full buckets: keys of 40 characters, type, ttl and total; a slot's name with a number of up to four
# digits; a watermark of the first format. Watermarks take 25 bytes today and go sooner, so costs are at most these. The
# figures stay: others would choose other tiers for windows that are in use.
_BASE_BYTES: Final = 75
_SLOT_BYTES: Final = 6
_WATERMARK_BYTES: Final = 72

# A shard is replaced about every 4 hours, and its watermark was removed after about 30.
_SHARD_SECONDS: Final = 4 * HOUR
_MOST_WATERMARKS: Final = 10


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Most that a window costs, with full slots.

    Parameters
    ----------
    tiers : tuple of str
        Names of its tiers, finest first.
    updates : int
        UpdateItem calls per touched group and batch, if the batch touches one bucket per tier.
    write_units : int
        Write units those updates consume.
    queries : int
        Concurrent Queries that read a window of up to the longest length.
    items_read : int
        Items those Queries read; more of a finer tier where that costs no more units.
    read_units : float
        Read units they consume, eventually consistent; strongly consistent reads take twice as many.
    """

    tiers: tuple[str, ...]
    updates: int
    write_units: int
    queries: int
    items_read: int
    read_units: float


def estimate_cost(tiers: tuple[Tier, ...], longest: float) -> CostEstimate:
    """The cost of windows of up to `longest` seconds whose groups one stream shard at a time feeds."""
    reads = _worst_queries(tiers, longest, 2)
    return CostEstimate(
        tuple(tier.name for tier in tiers),
        len(tiers),
        sum(math.ceil(bucket_bytes(tier) / _WRITE_BYTES) for tier in tiers),
        len(reads),
        sum(buckets for _, buckets in reads),
        sum(read_units(tier, buckets) for tier, buckets in reads),
    )


@lru_cache(maxsize=256)
def choose_tiers(precision: float, longest: float) -> tuple[Tier, ...]:
    """The tiers of a window, finest first: no Query over too many buckets, then fewest writes, then read units."""
    # Writes count before reads: one costs five times a read, and every event makes one. Both arguments are seconds.
    finest, *coarser = (tier for tier in TIERS if tier.slot_seconds >= precision)
    return min(
        ((finest, *more) for number in range(len(coarser) + 1) for more in combinations(coarser, number)),
        key=lambda tiers: _cost_order(tiers, longest),
    )


def read_units(tier: Tier, buckets: int) -> float:
    """Read units of one Query over full buckets, eventually consistent: half of the started 4 KB."""
    return math.ceil(buckets * bucket_bytes(tier) / _READ_BYTES) / 2


def bucket_bytes(tier: Tier) -> int:
    watermarks = min(_MOST_WATERMARKS, math.ceil(tier.seconds / _SHARD_SECONDS) + (tier.seconds >= HOUR))
    return _BASE_BYTES + len(tier.slots) * _SLOT_BYTES + watermarks * _WATERMARK_BYTES


def _worst_queries(tiers: tuple[Tier, ...], seconds: float, loose_ends: int) -> list[tuple[Tier, int]]:
    """Worst case of `plan_queries`: the tier of each Query and how many buckets it reads."""
    finest, coarsest = tiers[0], tiers[-1]
    finest_only = [(finest, finest.touched(seconds, loose_ends))]
    if len(tiers) == 1:
        return finest_only
    ends = _worst_queries(tiers[:-1], coarsest.slot_seconds, 1) * loose_ends
    mixed = [(coarsest, coarsest.touched(seconds, loose_ends)), *ends]
    return min(finest_only, mixed, key=_units)


def _units(reads: list[tuple[Tier, int]]) -> float:
    return sum(QUERY_OVERHEAD + read_units(tier, buckets) for tier, buckets in reads)


def _cost_order(tiers: tuple[Tier, ...], longest: float) -> tuple[int, int, float]:
    reads = _worst_queries(tiers, longest, 2)
    widest = max(buckets for _, buckets in reads)
    return max(0, widest - MAX_BUCKETS_PER_QUERY), len(tiers), _units(reads)
