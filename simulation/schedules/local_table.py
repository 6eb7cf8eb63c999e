"""DynamoDB Local, whose records are dated before more time passes: a run relies on when a record was created."""

from __future__ import annotations

from typing import Any

from simulation.clock import VirtualClock
from simulation.faults.hooked_client import HookedClient
from simulation.schedules.backend import LocalBackend


class _DatingClock(VirtualClock):
    """Calls a function before time passes."""

    def __init__(self, now: float, before: Any) -> None:
        super().__init__(now)
        self._before = before

    def advance(self, seconds: float) -> None:
        if seconds > 0:
            self._before()
        super().advance(seconds)


class DatedLocalBackend(LocalBackend):
    """A table of its own in DynamoDB Local."""

    def __init__(self, engine: Any, _rng: Any = None) -> None:
        super().__init__(engine, _rng)
        self.clock = _DatingClock(self.clock.now, self._date)
        self._is_undated = True
        self.client = HookedClient(self.client, self._note)

    def _note(self, name: str, send: Any, _: dict[str, Any]) -> Any:
        self._is_undated |= name not in ("get_item", "query", "scan", "batch_get_item", "describe_table")
        return send()

    def _date(self) -> None:
        """Read the stream to its end, which dates what is new."""
        if self._is_undated:
            for shard in self.stream.shards():
                self.stream.read(shard.id, None, 100_000)
            self._is_undated = False
