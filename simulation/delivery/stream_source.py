"""A stream that can be read, whatever the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dynamodb_counters._backfill.feeds import Shard
from simulation.memory.memory_stream import Page


def shard_id(name: str) -> str:
    """Id in its stream of a shard that is named with its table, ``<id>@<table>``, as two streams may share an id."""
    return name.partition("@")[0]


class Source(Protocol):
    """A stream that can be read."""

    @property
    def arn(self) -> str: ...

    def shards(self) -> Sequence[Shard]:
        """All shards, parents before children."""

    def read(self, shard: str, after: str | None, limit: int) -> Page:
        """Records that follow a sequence number; None is the beginning."""
