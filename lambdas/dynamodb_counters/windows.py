"""Windows: time cut into hour items with minute slots, and a window put together from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from dynamodb_counters.decimals import Number
from dynamodb_counters.errors import InvalidArgumentError
from dynamodb_counters.times import HOUR, MINUTE, utc

TOTAL: Final = "total"
SLOTS: Final = tuple(f"m{minute:02d}" for minute in range(60))


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time on minute boundaries, start included, end excluded.

    Parameters
    ----------
    start, end : int
        Seconds since 1970-01-01T00:00Z.

    Examples
    --------
    >>> interval = Interval.ending_at(90_061, timedelta(hours=24))
    >>> interval.start, interval.end
    (3720, 90120)
    """

    start: int
    end: int

    @classmethod
    def ending_at(cls, as_of: float, last: timedelta) -> Interval:
        """Give the interval that answers "the last so long, as of then".

        The minute that holds `as_of` is included whole, so that a count as of now holds all that has happened. Start
        and end each lie at most one minute after the asked ones.

        Parameters
        ----------
        as_of : float
            Seconds since 1970.
        last : timedelta
            Whole minutes.

        Returns
        -------
        Interval
            Exactly `last` long.

        Raises
        ------
        InvalidArgumentError
            `last` is not a positive number of whole minutes.
        """
        if not isinstance(last, timedelta) or last < timedelta(minutes=1) or last % timedelta(minutes=1):
            raise InvalidArgumentError("last", last, "a timedelta of one or more whole minutes")
        end = (math.floor(as_of) // MINUTE + 1) * MINUTE
        return cls(end - last // timedelta(seconds=1), end)

    @property
    def hours(self) -> range:
        """The hours it touches, counted from 1970."""
        return range(self.start // HOUR, (self.end - 1) // HOUR + 1)


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


def add_up(interval: Interval, buckets: Iterable[tuple[int, Mapping[str, Number]]]) -> WindowCount:
    """Put a window together: slots of the first and last hour, totals of those between.

    Parameters
    ----------
    interval : Interval
        What to cover.
    buckets : iterable of (int, mapping)
        Hour since 1970, and the numbers of its item (``total``, ``m00`` … ``m59``; absent ones are 0).

    Returns
    -------
    WindowCount
        The sum over the interval.

    Examples
    --------
    >>> add_up(Interval(3600, 7260), [(1, {"total": 5, "m00": 5}), (2, {"total": 3, "m00": 1, "m01": 2})]).count
    6
    """
    count: Number = 0
    for hour, numbers in buckets:
        begin = hour * HOUR
        first, stop = max(0, interval.start - begin) // MINUTE, min(HOUR, interval.end - begin) // MINUTE
        if first >= stop:
            continue
        if stop - first == len(SLOTS):
            count += numbers.get(TOTAL, 0)
        else:
            count += sum(numbers.get(slot, 0) for slot in SLOTS[first:stop])
    return WindowCount(count, utc(interval.start), utc(interval.end))
