"""The shards of a table's stream: which are open, and which came out of which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dynamodb_counters._control.run_items import ONLY_SHARD
from dynamodb_counters._streams import Shard, depth_of

DescribeShards: TypeAlias = Callable[[], Iterable[Shard]]


@dataclass(slots=True)
class Lineage:
    """All shards met so far: DynamoDB forgets them after a day."""

    parents: dict[str, str] = field(default_factory=dict)
    open: frozenset[str] = frozenset()

    def meet(self, shards: Iterable[Shard]) -> None:
        known = list(shards)
        self.parents |= {shard.id: shard.parent or self.parents.get(shard.id, "") for shard in known}
        self.open = frozenset(shard.id for shard in known if shard.is_open)

    def depth(self, shard: str) -> int:
        return depth_of(shard, self.parents)

    def waiting(self, acknowledged: Mapping[str, bool]) -> list[str]:
        """Open shards of which neither they nor a shard they came out of has acknowledged.

        Without the latter, shards that go on splitting would never have acknowledged all.
        """

        def is_done(shard: str) -> bool:
            if acknowledged.get(shard, False):
                return True
            parent = self.parents.get(shard, "")
            return bool(parent) and is_done(parent)

        return [] if acknowledged.get(ONLY_SHARD) else sorted(shard for shard in self.open if not is_done(shard))
