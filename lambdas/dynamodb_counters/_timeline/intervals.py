"""Intervals, and the Queries whose buckets add up to one.

The coarsest tier covers all that its slots resolve; the next finer one covers what remains at both ends. Whole buckets
count by their total, the first and last by their slots, so one item counts each moment of the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from dynamodb_counters._timeline.tiers import Tier
from dynamodb_counters._timeline.times import FIRST_SECOND, HOUR, LAST_SECOND, MINUTE
from dynamodb_counters.errors import InvalidArgumentError

_QUERY_OVERHEAD: Final = 0.5
"""Read units that the thread and connection of one more Query are taken to cost."""

_READ_BYTES: Final = 4096
"""https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html"""

# Measured on full buckets: keys of 40 characters, type, ttl and total; a slot's name with a number of up to four
# digits; watermarks, at their largest. A shard is replaced about every 4 hours, and leaves one for about 30.
_BASE_BYTES: Final = 75
_SLOT_BYTES: Final = 6
_WATERMARK_BYTES: Final = 72
_SHARD_SECONDS: Final = 4 * HOUR
_MOST_WATERMARKS: Final = 10


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time in seconds since 1970, start included, end excluded, within the years 1 to 9999.

    >>> interval = Interval.ending_at(90_061, timedelta(hours=24))
    >>> interval.start, interval.end
    (3720, 90120)
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if not (self.start >= FIRST_SECOND and self.end <= LAST_SECOND):
            raise InvalidArgumentError("interval", (self.start, self.end), "seconds within the years 1 to 9999")

    @classmethod
    def ending_at(cls, as_of: float, last: timedelta, precision: int = MINUTE) -> Interval:
        """The interval of length `last` that ends with the unit of precision (seconds) holding `as_of`.

        The unit is included whole, so a count as of now holds everything that has happened. Start and end each lie at
        most one unit after the requested ones.
        """
        unit = timedelta(seconds=precision)
        if not isinstance(last, timedelta) or last < unit or last % unit:
            raise InvalidArgumentError("last", last, f"a timedelta that is a multiple of the precision, {unit}")
        end = (math.floor(as_of) // precision + 1) * precision
        return cls(end - last // timedelta(seconds=1), end)

    @classmethod
    def around(cls, start: float, end: float, precision: int) -> Interval:
        """The shortest interval of whole units of precision (seconds) that holds another."""
        return cls(math.floor(start) // precision * precision, math.ceil(math.ceil(end) / precision) * precision)


@dataclass(frozen=True, slots=True)
class Span:
    """Span of one Query: an interval that begins and ends on slots of a tier."""

    tier: Tier
    interval: Interval

    @property
    def buckets(self) -> tuple[int, int]:
        """The first and the last bucket it touches."""
        return self.tier.locate(self.interval.start)[0], self.tier.locate(self.interval.end - 1)[0]


def plan_queries(tiers: tuple[Tier, ...], interval: Interval) -> list[Span]:
    """The cheapest Queries that cover an interval once; `tiers` are finest first, the finest has slots at both ends.

    >>> from dynamodb_counters._timeline.tiers import DAYS, HOURS
    >>> for span in plan_queries((HOURS, DAYS), Interval(60, 30 * 86_400 + 60)):
    ...     print(span.tier.name, span.interval)
    day Interval(start=3600, end=2592000)
    hour Interval(start=60, end=3600)
    hour Interval(start=2592000, end=2592060)
    """
    if interval.start >= interval.end:
        return []
    finest_only = [Span(tiers[0], interval)]
    if len(tiers) == 1:
        return finest_only
    *finer, coarsest = tiers
    unit = coarsest.slot_seconds
    start, end = -(-interval.start // unit) * unit, interval.end // unit * unit
    if start >= end:
        return plan_queries(tuple(finer), interval)
    ends = (Interval(interval.start, start), Interval(end, interval.end))
    at_the_ends = [span for part in ends for span in plan_queries(tuple(finer), part)]
    return min(finest_only, [Span(coarsest, Interval(start, end)), *at_the_ends], key=read_cost)


def read_cost(spans: Sequence[Span]) -> float:
    """Read units of Queries over full buckets, eventually consistent; their overhead included."""
    return sum(_QUERY_OVERHEAD + read_units(span) for span in spans)


def read_units(span: Span) -> float:
    """Read units of one Query over full buckets, eventually consistent: half of the started 4 KB."""
    first, last = span.buckets
    watermarks = min(_MOST_WATERMARKS, math.ceil(span.tier.seconds / _SHARD_SECONDS) + (span.tier.seconds >= HOUR))
    size = _BASE_BYTES + len(span.tier.slots) * _SLOT_BYTES + watermarks * _WATERMARK_BYTES
    return math.ceil((last - first + 1) * size / _READ_BYTES) / 2
