"""Streams and their mappings: labels, times, readers, the age of records, bisected batches, tumbling windows."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from simulation.memory.memory_stream import Page, Record

_MOST_SECONDS_OFF: Final = 1.0


def disorder(rng: random.Random) -> Callable[[], float]:
    """By how many seconds the time of each record is wrong."""
    return lambda: rng.uniform(-_MOST_SECONDS_OFF, _MOST_SECONDS_OFF)


def older(records: list[Record], than: float) -> list[Record]:
    """Return the first records of a batch, up to the last one of that age."""
    return records[: sum(record["dynamodb"]["ApproximateCreationDateTime"] <= than for record in records)]


def halves(batch: list[Record], cut: Callable[[int], int]) -> list[list[Record]]:
    """Parts of a batch, the later one first, split where `cut` says for its length; a single record is not split."""
    if len(batch) < 2:
        return [batch]
    middle = min(max(cut(len(batch)), 1), len(batch) - 1)
    return [batch[middle:], batch[:middle]]


class TumblingWindow:
    """The window one shard is in, its envelope and the state carried on; a length of 0 seconds is no windows at all."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._start: int | None = None
        self._state: dict[str, Any] = {}

    def same(self, records: list[Record]) -> list[Record]:
        """Return the first records, up to the end of the window that the first one is in."""
        if not self._seconds or not records:
            return records
        first = self._of(records[0])
        return records[: next((index for index, record in enumerate(records) if self._of(record) > first), None)]

    def admit(self, records: list[Record]) -> list[Record]:
        """Open a window for records of one window; none of them while an earlier one has to be ended first."""
        if not self._seconds or not records:
            return records
        begins = self._of(records[0])
        if self._start is None:
            self._start = begins
        return records if begins <= self._start else []

    def is_over(self, now: float, page: Page) -> bool:
        """Return whether the last invocation of an open window is due, given what was read."""
        if self._start is None:
            return False
        return bool(page.records) or page.ended or now >= self._start + self._seconds

    def envelope(self, *, final: bool) -> dict[str, Any]:
        """Lambda's additions to the event: window, state and flags."""
        assert self._start is not None
        return {
            "window": {"start": _iso(self._start), "end": _iso(self._start + self._seconds)},
            "state": self._state,
            "isFinalInvokeForWindow": final,
            "isWindowTerminatedEarly": False,
        }

    def keep(self, state: dict[str, Any], *, final: bool) -> None:
        """Keep the state a function returned for the window's next invocation, if there is one."""
        self._state = json.loads(json.dumps(state)) if state else {}
        if final:
            self.close()

    def close(self) -> None:
        self._start, self._state = None, {}

    def _of(self, record: Record) -> int:
        created = int(record["dynamodb"]["ApproximateCreationDateTime"])
        return created - created % self._seconds


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
