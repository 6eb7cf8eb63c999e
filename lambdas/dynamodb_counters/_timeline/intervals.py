"""Windows: which buckets an interval is put together from, and the sum of them.

The coarsest tier covers what its slots can tell; what is left at both ends is left to the next finer one. Whole buckets
count by their total, the first and last by their slots. So every moment of the interval is counted by one item only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from dynamodb_counters._timeline.cost_estimate import QUERY_PRICE, read_units
from dynamodb_counters._timeline.tiers import Tier
from dynamodb_counters._timeline.times import FIRST_SECOND, LAST_SECOND, MINUTE
from dynamodb_counters.errors import InvalidArgumentError

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time, start included, end excluded.

    Parameters
    ----------
    start, end : int
        Seconds since 1970-01-01T00:00Z.

    Raises
    ------
    InvalidArgumentError
        It reaches beyond the years 1 to 9999.

    Examples
    --------
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
        """Give the interval that answers "the last so long, as of then".

        The unit of precision that holds `as_of` is included whole, so that a count as of now holds all that has
        happened. Start and end each lie at most one unit after the asked ones.

        Parameters
        ----------
        as_of : float
            Seconds since 1970.
        last : timedelta
            Whole units of precision.
        precision : int, optional
            Seconds. Default: a minute.

        Returns
        -------
        Interval
            Exactly `last` long.

        Raises
        ------
        InvalidArgumentError
            `last` is not a positive number of whole units.
        """
        unit = timedelta(seconds=precision)
        if not isinstance(last, timedelta) or last < unit or last % unit:
            raise InvalidArgumentError("last", last, f"a timedelta of one or more times the precision, {unit}")
        end = (math.floor(as_of) // precision + 1) * precision
        return cls(end - last // _SECOND, end)

    @classmethod
    def around(cls, start: float, end: float, precision: int) -> Interval:
        """Give the shortest interval of whole units of precision that holds another.

        Parameters
        ----------
        start, end : float
            Seconds since 1970.
        precision : int
            Seconds.

        Returns
        -------
        Interval
            Start and end each lie less than one unit outside the asked ones.
        """
        return cls(math.floor(start) // precision * precision, math.ceil(math.ceil(end) / precision) * precision)


@dataclass(frozen=True, slots=True)
class Span:
    """What one Query covers: a part of an interval, in buckets of one tier.

    Parameters
    ----------
    tier : Tier
        Whose buckets.
    interval : Interval
        Begins and ends on slots of the tier.
    """

    tier: Tier
    interval: Interval

    @property
    def buckets(self) -> tuple[int, int]:
        """The first and last bucket it touches."""
        return self.tier.place(self.interval.start)[0], self.tier.place(self.interval.end - 1)[0]


def plan(tiers: tuple[Tier, ...], interval: Interval) -> list[Span]:
    """Choose the buckets an interval is put together from.

    Parameters
    ----------
    tiers : tuple of Tier
        Those of a window, finest first.
    interval : Interval
        Begins and ends on slots of the finest tier.

    Returns
    -------
    list of Span
        Together they are the interval, none overlaps another.

    Examples
    --------
    >>> from dynamodb_counters._timeline.tiers import DAYS, HOURS
    >>> for span in plan((HOURS, DAYS), Interval(60, 30 * 86_400 + 60)):
    ...     print(span.tier.name, span.interval)
    day Interval(start=3600, end=2592000)
    hour Interval(start=60, end=3600)
    hour Interval(start=2592000, end=2592060)
    """
    if interval.start >= interval.end:
        return []
    alone = [Span(tiers[0], interval)]
    if len(tiers) == 1:
        return alone
    *finer, coarsest = tiers
    unit = coarsest.slot_seconds
    start, end = -(-interval.start // unit) * unit, interval.end // unit * unit
    if start >= end:
        return plan(tuple(finer), interval)
    ends = (Interval(interval.start, start), Interval(end, interval.end))
    apart = [Span(coarsest, Interval(start, end)), *(span for part in ends for span in plan(tuple(finer), part))]
    return min(alone, apart, key=price)


def price(spans: Sequence[Span]) -> float:
    """Weigh the Queries of a read: their read units, and half a unit for each.

    Parameters
    ----------
    spans : sequence of Span
        What the Queries cover.

    Returns
    -------
    float
        Less is better.
    """
    return sum(QUERY_PRICE + read_units(span.tier, span.buckets[1] - span.buckets[0] + 1) for span in spans)
