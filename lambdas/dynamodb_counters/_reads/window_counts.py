"""Counts of windows as they are read, and sums of their buckets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from dynamodb_counters._declarations.measures import DIVISION, MOMENT
from dynamodb_counters._items.conversions import Number
from dynamodb_counters._timeline.tiers import TOTAL, Span
from dynamodb_counters.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class WindowCount:
    """A count and exactly the interval it covers.

    Parameters
    ----------
    count : int or Decimal
        The window's measure over the interval.
    start, end : datetime
        The interval in UTC, start included, end excluded.
    complete : bool, optional
        As of a `Group`: whether all there is of the interval has been counted.

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


@dataclass(frozen=True, slots=True)
class Integral:
    """A level over an interval of time.

    Parameters
    ----------
    value : int or Decimal
        The level times the seconds for which it held, added up: GB-seconds.
    opening, closing : int or Decimal
        The level at the start and at the end.
    start, end : datetime
        The interval in UTC, start included, end excluded.
    complete : bool, optional
        As of a `Group`.

    Examples
    --------
    >>> day = Integral(86_400, 1, 1, datetime(2026, 11, 20), datetime(2026, 11, 21))
    >>> day.per(timedelta(hours=1)), day.average
    (Decimal('24'), Decimal('1'))
    """

    value: Number
    opening: Number
    closing: Number
    start: datetime
    end: datetime
    complete: bool = True

    def per(self, unit: timedelta) -> Decimal:
        """The value in units of time other than seconds, rounded to 38 digits: GB-hours, seat-days.

        Parameters
        ----------
        unit : timedelta
        """
        if not isinstance(unit, timedelta) or unit <= timedelta(0):
            raise InvalidArgumentError("unit", unit, "a timedelta above 0, such as timedelta(hours=1)")
        microseconds = unit // timedelta(microseconds=1)
        return DIVISION.divide(Decimal(self.value) * 1_000_000, Decimal(microseconds))

    @property
    def average(self) -> Decimal:
        """The level on average, weighted by time."""
        return self.per(self.end - self.start)


def add_moments(span: Span, buckets: Iterable[tuple[int, Mapping[str, Number]]]) -> Number:
    """The sum of changes of a level times the moments of these, in seconds since 1970."""
    found: Number = 0
    for bucket, numbers in buckets:
        held = {name.removesuffix(MOMENT): number for name, number in numbers.items() if name.endswith(MOMENT)}
        found += add_up(span, [(bucket, held)]) + span.tier.start(bucket) * add_up(span, [(bucket, numbers)])
    return found


def add_up(span: Span, buckets: Iterable[tuple[int, Mapping[str, Number]]]) -> Number:
    """The sum of what buckets hold of a span; each is a number of its tier and its item's total and slots."""
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
