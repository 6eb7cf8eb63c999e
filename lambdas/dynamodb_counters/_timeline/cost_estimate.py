"""The arithmetic of tiers: what a window costs to write and to read, and which tiers cost least."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final

from dynamodb_counters._timeline.tiers import TIERS, Tier
from dynamodb_counters._timeline.times import HOUR

MOST_BUCKETS: Final = 40
"""So many buckets one Query reads without a second thought: 40 full ones are about 25 KB, 3.5 read units."""

QUERY_PRICE: Final = 0.5
"""A Query more takes a thread and a connection: as if it were half a read unit."""

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
_READ_BYTES: Final = 4096
_WRITE_BYTES: Final = 1024

# Measured on full buckets: keys of 40 characters, type, ttl, total; a slot's name and a number of up to four digits;
# a watermark's name, its 40 digits and its hour.
_BASE_BYTES: Final = 75
_SLOT_BYTES: Final = 6
_WATERMARK_BYTES: Final = 72

# Shards are replaced about every four hours, and the watermarks of old ones are removed after about 30.
_SHARD_SECONDS: Final = 4 * HOUR
_MOST_WATERMARKS: Final = 10


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What a window costs at most, with full slots.

    Parameters
    ----------
    tiers : tuple of str
        Its tiers, finest first.
    updates : int
        UpdateItem calls a touched group and batch makes, while the batch touches one bucket a tier.
    write_units : int
        What they consume.
    queries : int
        Queries that a window of up to the longest takes, all at once.
    items_read : int
        Items they read; more of a finer tier where that costs no more units.
    read_units : float
        What that consumes, eventually consistent; twice as much strongly consistent.
    """

    tiers: tuple[str, ...]
    updates: int
    write_units: int
    queries: int
    items_read: int
    read_units: float


def arithmetic(tiers: tuple[Tier, ...], longest: float, shards: int = 1) -> Arithmetic:
    """Work out what a window costs.

    Parameters
    ----------
    tiers : tuple of Tier
        Its tiers, finest first.
    longest : float
        Seconds of the longest window.
    shards : int, optional
        Stream shards that feed a group at a time: 1 where a group's events share a partition key. Each leaves a
        watermark in every bucket it touches. Default 1.

    Returns
    -------
    Arithmetic
        Its costs.

    Examples
    --------
    >>> arithmetic(choose(60, 86_400), 86_400)
    Arithmetic(tiers=('hour',), updates=1, write_units=1, queries=1, items_read=25, read_units=2.0)
    """
    reads = _reads(tiers, longest, 2)
    return Arithmetic(
        tuple(tier.name for tier in tiers),
        len(tiers),
        sum(math.ceil(bucket_bytes(tier, shards) / _WRITE_BYTES) for tier in tiers),
        len(reads),
        sum(buckets for _, buckets in reads),
        sum(read_units(tier, buckets, shards) for tier, buckets in reads),
    )


@lru_cache(maxsize=256)
def choose(precision: float, longest: float) -> tuple[Tier, ...]:
    """Choose the tiers of a window: no Query over too many buckets, then the fewest writes, then the fewest read units.

    Writes count first, as they cost five times a read and happen for every event.

    Parameters
    ----------
    precision : float
        Seconds; the slots of a tier.
    longest : float
        Seconds of the longest window.

    Returns
    -------
    tuple of Tier
        Finest first.

    Examples
    --------
    >>> [tier.name for tier in choose(60, 30 * 86_400)]
    ['hour', 'day']
    """
    finest, *coarser = (tier for tier in TIERS if tier.slot_seconds >= precision)
    return min(
        ((finest, *more) for number in range(len(coarser) + 1) for more in combinations(coarser, number)),
        key=lambda tiers: _price(tiers, longest),
    )


def read_units(tier: Tier, buckets: int, shards: int = 1) -> float:
    """Estimate what one Query over full buckets consumes, eventually consistent.

    Parameters
    ----------
    tier : Tier
        Their tier.
    buckets : int
        How many.
    shards : int, optional
        As for `arithmetic`. Default 1.

    Returns
    -------
    float
        Read units: half of the sum in 4 KB, rounded up.
    """
    return math.ceil(buckets * bucket_bytes(tier, shards) / _READ_BYTES) / 2


def bucket_bytes(tier: Tier, shards: int = 1) -> int:
    """Estimate the size of a full bucket.

    Parameters
    ----------
    tier : Tier
        Its tier.
    shards : int, optional
        As for `arithmetic`. Default 1.

    Returns
    -------
    int
        Bytes.
    """
    watermarks = min(_MOST_WATERMARKS, math.ceil(tier.seconds / _SHARD_SECONDS) + (tier.seconds >= HOUR))
    return _BASE_BYTES + len(tier.slots) * _SLOT_BYTES + watermarks * shards * _WATERMARK_BYTES


def _reads(tiers: tuple[Tier, ...], seconds: float, loose_ends: int) -> list[tuple[Tier, int]]:
    """Tell the Queries of a window; `dynamodb_counters._timeline.intervals.plan` in numbers, at its worst."""
    finest, coarsest = tiers[0], tiers[-1]
    alone = [(finest, finest.touched(seconds, loose_ends))]
    if len(tiers) == 1:
        return alone
    ends = _reads(tiers[:-1], coarsest.slot_seconds, 1) * loose_ends
    apart = [(coarsest, coarsest.touched(seconds, loose_ends)), *ends]
    return min(alone, apart, key=_units)


def _units(reads: list[tuple[Tier, int]]) -> float:
    return sum(QUERY_PRICE + read_units(tier, buckets) for tier, buckets in reads)


def _price(tiers: tuple[Tier, ...], longest: float) -> tuple[int, int, float]:
    reads = _reads(tiers, longest, 2)
    widest = max(buckets for _, buckets in reads)
    return max(0, widest - MOST_BUCKETS), len(tiers), _units(reads)
