"""A source table, read and never written: no heartbeat but its stream itself shows what is not logged yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._backfill.scan import Source
from dynamodb_counters._fold.records import created_of
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._streams import Shard, StreamReader
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError

_QUIET_PAGES: Final = 10


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The source table of an aggregator, and a reader of its stream."""

    table: Table
    arn: str
    key_names: tuple[str, ...]
    stream: StreamReader

    @classmethod
    def described(cls, client: Any, streams: Any, arn: str) -> SourceTable:
        known = client.describe_table(TableName=arn)["Table"]
        if known.get("StreamSpecification", {}).get("StreamViewType") != "NEW_AND_OLD_IMAGES":
            raise BackfillError(f"invalid source table {arn}: expected a stream of new and old images")
        names = tuple(key["AttributeName"] for key in known["KeySchema"])
        reader = StreamReader(streams, known["LatestStreamArn"], quiet_pages=_QUIET_PAGES)
        return cls(Table(arn, client), arn, names, reader)

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
            for shard in self.stream.shards()
        ]

    def has_more(self, shard: str, logged: str, since: float, until: float) -> bool:
        """Whether a shard holds records of a time that come after the last one logged."""
        try:
            for record in self.stream.records(shard.removesuffix(self._suffix), logged.lstrip("0")):
                if created_of(record) >= since:
                    return created_of(record) <= until
        except self.stream.client.exceptions.ResourceNotFoundException:
            pass  # The stream has forgotten the shard, after a day.
        return False


def sources_of(table: Table, source: SourceTable | None) -> tuple[Source, ...]:
    """Tables to scan: that of the counts, and the source table if there is one."""
    if source is None:
        return (Source(table, (PK, SK)),)
    return Source(table, (PK, SK), is_foreign=False), Source(source.table, source.key_names, is_foreign=True)
