"""Sums of a window's buckets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from dynamodb_counters._items.decimals import Number
from dynamodb_counters._timeline.intervals import Span
from dynamodb_counters._timeline.tiers import TOTAL


@dataclass(frozen=True, slots=True)
class WindowCount:
    """A count and exactly the interval it covers.

    Parameters
    ----------
    count : int or Decimal
        The window's measure over the interval.
    start, end : datetime
        The interval in UTC, start included, end excluded.
    complete, as_declared : bool, optional
        As of a `Group`: whether all there is of the interval has been counted, and by the definition that is declared.

    Examples
    --------
    >>> hour = WindowCount(5, datetime(2026, 11, 20, 10), datetime(2026, 11, 20, 11))
    >>> hour.end - hour.start
    datetime.timedelta(seconds=3600)
    """

    count: Number
    start: datetime
    end: datetime
    complete: bool = True
    as_declared: bool = True


@dataclass(frozen=True, slots=True)
class Comparison:
    """A window and the one before it.

    Parameters
    ----------
    current, previous : WindowCount
        Two windows of equal length; `previous` ends where `current` starts.

    Examples
    --------
    >>> noon = datetime(2026, 11, 20, 12)
    >>> Comparison(WindowCount(6, noon, noon), WindowCount(4, noon, noon)).ratio
    0.5
    """

    current: WindowCount
    previous: WindowCount

    @property
    def change(self) -> Number:
        """The current count minus the previous one."""
        return self.current.count - self.previous.count

    @property
    def ratio(self) -> float | None:
        """The change relative to the previous count: 0.5 is half as many again; None if the previous count is 0."""
        return float(self.change / self.previous.count) if self.previous.count else None


def add_up(span: Span, buckets: Iterable[tuple[int, Mapping[str, Number]]]) -> Number:
    """The sum of what buckets hold of a span; each is a number of its tier and its item's total and slots.

    >>> from dynamodb_counters._timeline.intervals import Interval
    >>> from dynamodb_counters._timeline.tiers import HOURS
    >>> add_up(Span(HOURS, Interval(3600, 7260)), [(1, {"total": 5}), (2, {"total": 3, "m00": 1, "m01": 2})])
    6
    """
    count: Number = 0
    tier, start, end = span.tier, span.interval.start, span.interval.end
    for bucket, numbers in buckets:
        begin, stop = tier.start(bucket), tier.end(bucket)
        if start <= begin and stop <= end:
            count += numbers.get(TOTAL, 0)
        else:
            first, last = max(0, start - begin), min(stop, end) - begin
            slots = tier.slots[first // tier.slot_seconds : max(0, last) // tier.slot_seconds]
            count += sum(numbers.get(slot, 0) for slot in slots)
    return count
