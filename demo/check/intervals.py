"""The intervals that windows cover, and events counted in them one by one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple


class Interval(NamedTuple):
    """From `start` up to, not including, `end`."""

    start: datetime
    end: datetime

    def section(self) -> dict[str, Any]:
        return {
            "as_of": self.end.isoformat(),
            "from": self.start.isoformat(),
            "from_inclusive": True,
            "as_of_inclusive": False,
        }


class Timeline:
    """When the events of each group took place."""

    def __init__(self, events: Iterable[tuple[str, datetime]]) -> None:
        self._times: dict[str, list[datetime]] = {}
        for group, time in events:
            self._times.setdefault(group, []).append(time)
        self.counts = {group: len(times) for group, times in self._times.items()}
        self.total = sum(self.counts.values())
        self.last = max(chain.from_iterable(self._times.values()), default=None)

    def rolling(self, interval: Interval) -> dict[str, int]:
        """Count each group's events in an interval; groups without any count 0."""
        return {
            group: sum(interval.start <= time < interval.end for time in times) for group, times in self._times.items()
        }
