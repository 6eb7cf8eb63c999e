"""What a window's buckets add up to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from dynamodb_counters._items.decimals import Number
from dynamodb_counters._timeline.intervals import Span
from dynamodb_counters._timeline.tiers import TOTAL


@dataclass(frozen=True, slots=True)
class WindowCount:
    """How many in a window, and exactly which window.

    Parameters
    ----------
    count : int or Decimal
        The window's measure.
    start, end : datetime
        The interval covered, UTC; start included, end excluded.
    """

    count: Number
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Comparison:
    """A window beside the one before it.

    Parameters
    ----------
    current, previous : WindowCount
        Two windows of equal length; the second ends where the first begins.
    """

    current: WindowCount
    previous: WindowCount

    @property
    def change(self) -> Number:
        """How many more than before; negative for fewer."""
        return self.current.count - self.previous.count

    @property
    def ratio(self) -> float | None:
        """The change as a part of what was before: 0.5 is half as many again; None where there was nothing."""
        return float(self.change / self.previous.count) if self.previous.count else None


def add_up(span: Span, buckets: Iterable[tuple[int, Mapping[str, Number]]]) -> Number:
    """Add up what a span's buckets hold of it.

    Parameters
    ----------
    buckets : iterable of (int, mapping)
        Buckets of the tier and the numbers of their items (total and slots; absent ones are 0).

    Returns
    -------
    int or Decimal
        The sum.

    Examples
    --------
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
