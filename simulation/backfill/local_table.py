"""DynamoDB Local, whose records are dated before more time passes: a run relies on when a record was created."""

from __future__ import annotations

from typing import Any

from simulation.clock import VirtualClock
from simulation.dynamodb.stream_source import Source
from simulation.schedules.backend import LocalBackend


class _DatingClock(VirtualClock):
    """Reads a stream to its end whenever time passes."""

    source: Source | None = None

    def advance(self, seconds: float) -> None:
        if self.source is not None and seconds > 0:
            for shard in self.source.shards():
                self.source.read(shard.id, None, 100_000)
        super().advance(seconds)


class DatedLocalBackend(LocalBackend):
    """A table of its own in DynamoDB Local."""

    def __init__(self, engine: Any, _rng: Any = None) -> None:
        super().__init__(engine, _rng)
        clock = _DatingClock(self.clock.now)
        clock.source = self.stream
        self.clock = clock
