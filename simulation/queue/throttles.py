"""Throttles of a table: token buckets of the table, of partition keys, of items, and of an index's partition keys."""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

_REMEMBERED: Final = 256
"""Sort keys by which a busy range is split in the middle."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Units per second, by default without limits.

    `writes` and `reads` are those of a partition key and, as `index_writes` are, of an index's; `writes` also of an
    item. A range of a partition key's sort keys that was throttled for `splits_after` seconds becomes two of them.
    """

    table_writes: float = math.inf
    writes: float = math.inf
    reads: float = math.inf
    index_writes: float = math.inf
    splits_after: float = math.inf


@dataclass(slots=True)
class _Bucket:
    """Tokens, filled for one second at most: DynamoDB may save more, and does not promise any."""

    rate: float
    tokens: float
    filled_at: float

    def holds(self, units: float, now: float) -> bool:
        """Whether so many are there; a request for more than it can hold waits until it is full."""
        if math.isinf(self.rate):
            return True
        self.tokens = min(self.rate, self.tokens + (now - self.filled_at) * self.rate)
        self.filled_at = now
        return self.tokens >= min(units, self.rate)


@dataclass(slots=True)
class _Range:
    """Sort keys of a partition key, with the latest that came and since when they are throttled."""

    bucket: _Bucket
    latest: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    hot_since: float = math.inf


class Throttles:
    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._clock = clock
        self._buckets: dict[Hashable, _Bucket] = {}
        self._ranges: dict[str, dict[str, _Range]] = {}
        """By partition key, and by the sort key that a range begins with."""
        self._begins: dict[str, list[str]] = {}

    def take(self, writes: Sequence[tuple[str, str, float]], index_writes: Sequence[tuple[str, float]] = ()) -> bool:
        """Take the units of a request's writes, by partition and sort key, and those of indexes; or none of them."""
        limits, now = self.limits, self._clock()
        wanted: list[tuple[_Bucket, float]] = []
        for pk, sk, units in writes:
            part = self._range(pk, sk)
            part.latest.append(sk)
            if part.bucket.holds(units, now):
                part.hot_since = math.inf if part.bucket.tokens > part.bucket.rate / 2 else part.hot_since
            else:
                self._heat(pk, part, now)
                return False
            wanted.append((part.bucket, units))
            if math.isfinite(limits.writes):
                wanted.append((self._bucket((pk, sk), limits.writes), units))
        wanted.append((self._bucket("table", limits.table_writes), sum(units for _, _, units in writes)))
        wanted += [(self._bucket(("index", key), limits.index_writes), units) for key, units in index_writes]
        return _take(wanted, now)

    def take_reads(self, pk: str, units: float) -> bool:
        return _take([(self._bucket(("reads", pk), self.limits.reads), units)], self._clock())

    def _bucket(self, name: Hashable, rate: float) -> _Bucket:
        if name not in self._buckets:
            self._buckets[name] = _Bucket(rate, rate, self._clock())
        return self._buckets[name]

    def _range(self, pk: str, sk: str) -> _Range:
        if pk not in self._ranges:
            self._ranges[pk] = {"": _Range(_Bucket(self.limits.writes, self.limits.writes, self._clock()))}
            self._begins[pk] = [""]
        begins = self._begins[pk]
        return self._ranges[pk][begins[bisect_right(begins, sk) - 1]]

    def _heat(self, pk: str, part: _Range, now: float) -> None:
        part.hot_since = min(part.hot_since, now)
        if now - part.hot_since < self.limits.splits_after:
            return
        part.hot_since = now
        begin = sorted(part.latest)[len(part.latest) // 2]
        if begin > min(part.latest):
            self._ranges[pk][begin] = _Range(_Bucket(self.limits.writes, 0.0, now))
            insort(self._begins[pk], begin)


def _take(wanted: Sequence[tuple[_Bucket, float]], now: float) -> bool:
    if not all(bucket.holds(units, now) for bucket, units in wanted):
        return False
    for bucket, units in wanted:
        bucket.tokens -= units
    return True
