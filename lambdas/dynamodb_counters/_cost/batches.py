"""Batches of a stream shard: how many events they hold, and how many groups those touch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

TUMBLING_SECONDS: Final = 900
"""The tumbling window of the event source mapping."""

SHARD_LIFETIME: Final = 4 * 3600.0
"""Seconds after which DynamoDB replaces a shard: about four hours, as seen; AWS does not say."""

_EXACT_RANKS: Final = 2_000


def touched(groups: float, events: float) -> float:
    """How many of equally likely groups so many events touch on average.

    >>> touched(1, 1000), round(touched(100, 100), 1)
    (1.0, 63.4)
    """
    if groups <= 1:
        return min(1.0, events)
    return groups * -math.expm1(events * math.log1p(-1 / groups))


@lru_cache(maxsize=256)
def touched_by_rank(groups: int, skew: float, events: float) -> float:
    """The same where the n-th group has `1 / n ** skew` of the first one's events.

    >>> touched_by_rank(50, 0.0, 100.0) == touched(50, 100), round(touched_by_rank(50, 1.0, 1000.0), 1)
    (True, 49.9)
    """
    if not skew:
        return touched(groups, events)
    ranks = _ranks(groups)
    weights = [rank**-skew for rank, _ in ranks]
    total = sum(weight * number for weight, (_, number) in zip(weights, ranks, strict=True))
    return sum(
        number * -math.expm1(events * math.log1p(-min(weight / total, 1 - 1e-12)))
        for weight, (_, number) in zip(weights, ranks, strict=True)
    )


def hottest_share(groups: int, skew: float) -> float:
    return 1 / sum(number * math.pow(rank, -skew) for rank, number in _ranks(groups))


@lru_cache(maxsize=16)
def _ranks(groups: int) -> list[tuple[float, int]]:
    """Each of the first ranks, then ranges of ranks by their middle: rank and how many."""
    exact = min(groups, _EXACT_RANKS)
    found = [(float(rank), 1) for rank in range(1, exact + 1)]
    start = exact
    while start < groups:
        end = min(groups, max(start + 1, int(start * 1.01)))
        found.append(((start + end + 1) / 2, end - start))
        start = end
    return found


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of one shard: events in each, seconds from one to the next (0 in a backlog), how many in its life."""

    events: float
    seconds: float = 0.0
    per_shard: float = math.inf
    tumbling_seconds: float = TUMBLING_SECONDS

    @classmethod
    def gathered(cls, rate: float, gather: float, most: float, per_record: float = 1.0) -> Batches:
        """The batches of a shard with `rate` events per second, each gathered so long and of `most` events."""
        events = max(per_record, min(per_record + rate * gather, most))
        return cls.every(events, events / rate)

    @classmethod
    def every(cls, events: float, seconds: float) -> Batches:
        return cls(events, seconds, SHARD_LIFETIME / seconds)

    @property
    def per_window(self) -> float:
        return self.tumbling_seconds / self.seconds if self.seconds else math.inf
