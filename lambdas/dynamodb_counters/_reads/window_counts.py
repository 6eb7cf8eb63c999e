"""Counts of windows as they are read, and sums of their buckets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import localcontext

from dynamodb_counters._items.decimals import EXACT, Number, whole
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


@dataclass(frozen=True, slots=True)
class Statement:
    """The count of a billing period, with what arrived too late for the periods that are closed already.

    Parameters
    ----------
    count : int or Decimal
        The window's measure over the period.
    adjustment : int or Decimal
        Changes of the closed periods before, since the last of them was closed; 0 unless this one follows it.
    start, end : datetime
        The period in UTC, start included, end excluded.
    closed_at : datetime, optional
        When it was closed, from which on its numbers stand. Default None: it is open.
    complete, as_declared : bool, optional
        As of a `Group`; both are true of a closed period.

    Examples
    --------
    >>> october = Statement(100, -2, datetime(2026, 10, 1), datetime(2026, 11, 1))
    >>> october.total, october.closed_at
    (98, None)
    """

    count: Number
    adjustment: Number
    start: datetime
    end: datetime
    closed_at: datetime | None = None
    complete: bool = True
    as_declared: bool = True

    @property
    def total(self) -> Number:
        """The amount to bill: `count` and `adjustment`."""
        with localcontext(EXACT):
            return whole(self.count + self.adjustment)


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
