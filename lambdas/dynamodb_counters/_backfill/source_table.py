"""A source table, apart from the table of the counts: read, never written.

A run puts no heartbeat into it. So its stream itself shows whether a shard holds anything that is not logged yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._backfill.scan import Source
from dynamodb_counters._backfill.shards import Shard, stream_shards
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError

_QUIET_PAGES: Final = 10
"""Empty pages in a row after which a shard is taken to have no more: nothing else shows it."""

_PAUSE: Final = 0.2  # A shard takes five requests per second.


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The source table of an aggregator; `streams` is a client of its stream."""

    table: Table
    arn: str
    key_names: tuple[str, ...]
    stream: str
    streams: Any
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def described(cls, client: Any, streams: Any, arn: str) -> SourceTable:
        """Look up what a run must know of the table with an ARN."""
        known = client.describe_table(TableName=arn)["Table"]
        if known.get("StreamSpecification", {}).get("StreamViewType") != "NEW_AND_OLD_IMAGES":
            raise BackfillError(f"invalid source table {arn}: expected a stream of new and old images")
        names = tuple(key["AttributeName"] for key in known["KeySchema"])
        return cls(Table(arn, client), arn, names, known["LatestStreamArn"], streams)

    @property
    def scanned(self) -> Source:
        return Source(self.table, self.key_names, is_foreign=True)

    @property
    def _suffix(self) -> str:
        return f"@{self.arn.rpartition('/')[2]}"

    def has(self, shard: str) -> bool:
        """Whether a shard, as the aggregator calls it, is of this table."""
        return shard.endswith(self._suffix)

    def shards(self) -> list[Shard]:
        """The stream's shards, as the aggregator calls them."""
        return [
            Shard(shard.id + self._suffix, shard.parent and shard.parent + self._suffix, shard.is_open)
            for shard in stream_shards(self.streams, self.stream)
        ]

    def has_more(self, shard: str, logged: str, since: float, until: float) -> bool:
        """Whether a shard holds records of a time that come after the last one logged."""
        for created in self._created(shard.removesuffix(self._suffix), logged):
            if created > until:
                return False
            if created >= since:
                return True
        return False

    def _created(self, shard: str, after: str) -> Iterator[float]:
        """When the records of a shard were created, up to its present end."""
        asked: dict[str, Any] = {"StreamArn": self.stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
        if after:
            asked |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after.lstrip("0")}
        try:
            iterator = self.streams.get_shard_iterator(**asked).get("ShardIterator")
        except self.streams.exceptions.ResourceNotFoundException:
            return  # The stream has forgotten the shard, after a day.
        quiet = 0
        while iterator is not None and quiet < _QUIET_PAGES:
            page = self.streams.get_records(ShardIterator=iterator)
            yield from (record["dynamodb"]["ApproximateCreationDateTime"].timestamp() for record in page["Records"])
            iterator = page.get("NextShardIterator")
            quiet = 0 if page["Records"] else quiet + 1
            if quiet:
                self.sleep(_PAUSE)
