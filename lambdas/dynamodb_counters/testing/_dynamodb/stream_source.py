"""A stream that can be read, whatever the engine: shards, and records as Lambda hands them over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

Record: TypeAlias = dict[str, Any]
"""A stream record as it stands in a Lambda event."""


class ShardInfo(NamedTuple):
    id: str
    parent: str | None


class Page(NamedTuple):
    """Records read, and whether the shard is closed and has no more."""

    records: list[Record]
    ended: bool


def shard_id(name: str) -> str:
    """Id in its stream of a shard that is named with its table, ``<id>@<table>``, as two streams may share an id."""
    return name.partition("@")[0]


class Source(Protocol):
    """A stream that can be read."""

    @property
    def arn(self) -> str: ...

    def shards(self) -> Sequence[ShardInfo]:
        """All shards, parents before children."""

    def read(self, shard: str, after: str | None, limit: int) -> Page:
        """Records that follow a sequence number; None is the beginning."""
