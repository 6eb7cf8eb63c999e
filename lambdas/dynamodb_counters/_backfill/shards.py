"""The shards of a table's stream: which are open, and which came out of which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dynamodb_counters._control.run_items import ONLY_SHARD


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard; `parent` is "" if none is known any more."""

    id: str
    parent: str
    is_open: bool


DescribeShards: TypeAlias = Callable[[], Iterable[Shard]]


def stream_shards(client: Any, arn: str) -> list[Shard]:
    """Shards of a stream that DynamoDB describes: those of the last 24 hours."""
    found: list[Shard] = []
    more: dict[str, Any] = {}
    while True:
        described = client.describe_stream(StreamArn=arn, **more)["StreamDescription"]
        for shard in described["Shards"]:
            is_open = "EndingSequenceNumber" not in shard["SequenceNumberRange"]
            found.append(Shard(shard["ShardId"], shard.get("ParentShardId", ""), is_open))
        if "LastEvaluatedShardId" not in described:
            return found
        more = {"ExclusiveStartShardId": described["LastEvaluatedShardId"]}


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
        """How many generations of shards come before a shard: parents are delivered before children."""
        parent = self.parents.get(shard, "")
        return 1 + self.depth(parent) if parent in self.parents else 0

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
