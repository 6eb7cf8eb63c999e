"""Tumbling windows of a mapping: a shard's window, its envelope and the state that is carried on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from simulation.aws.rule import Rule
from simulation.memory.memory_stream import Page, Record

STATE_IS_RETURNED: Final = Rule(
    "an invocation of a tumbling window returns its state",
    "If the response does not contain a state property, Lambda considers this a failed invocation.",
    "https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-windows.html",
    switch="simulation.delivery.event_source_mapping.Settings(window_seconds)",
    guard="an invocation of a window returns no state",
)


class TumblingWindow:
    """The window one shard is in, its envelope and the state carried on; a length of 0 seconds is no windows at all."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._start: int | None = None
        self._state: dict[str, Any] = {}

    def same(self, records: list[Record]) -> list[Record]:
        """The first records, up to the end of the window that the first one is in."""
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
        """Whether the last invocation of an open window is due, given what was read."""
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
