"""The intervals that windows cover, and events counted in them one by one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple


class Interval(NamedTuple):
    """From `start` up to, not including, `end`."""

    start: datetime
    end: datetime

    def section(self) -> dict[str, Any]:
        """The interval as the report states it."""
        return {
            "as_of": self.end.isoformat(),
            "from": self.start.isoformat(),
            "from_inclusive": True,
            "as_of_inclusive": False,
        }


def count_between(interval: Interval, groups: Iterable[str], events: Iterable[tuple[str, datetime]]) -> dict[str, int]:
    """Count each group's events in an interval; groups without any count 0."""
    counts = dict.fromkeys(groups, 0)
    for group, time in events:
        if interval.start <= time < interval.end:
            counts[group] += 1
    return counts
