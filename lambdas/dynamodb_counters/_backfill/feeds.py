"""The streams that feed the counts, and the time of their records.

They are the table's own, and that of a source table, which is read and never written.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

from dynamodb_counters._assumptions import CLOCKS, ONE_CLOCK
from dynamodb_counters._backfill.scan import Source
from dynamodb_counters._control.control import read_control
from dynamodb_counters._control.deployment_items import history_key
from dynamodb_counters._fold.origins import Origins
from dynamodb_counters._fold.records import Record, created_of
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._streams import Shard, StreamReader
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError

EMULATOR_HEADER: Final = "x-counters-dev"
"""In each answer of an emulator that alone runs what counts its tables; AWS sends none."""

ASKED_EVERY: Final = 5.0
"""Seconds; a monotonic clock measures the time in between."""

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
        # No heartbeat but its stream itself shows what is not logged yet.
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


class Feeds(NamedTuple):
    """The table's own stream, and the source table if there is one, by clocks that differ by less than `clocks`."""

    stream: StreamReader
    source: SourceTable | None = None
    clocks: float = CLOCKS

    def shards(self) -> list[Shard]:
        """All shards as the aggregator calls them."""
        return [*self.stream.shards(), *(self.source.shards() if self.source is not None else ())]

    def is_foreign(self, shard: str) -> bool | None:
        """Whether a shard is of the source table, as of a `Change`."""
        return None if self.source is None else self.source.has(shard)

    def records(self, shard: str, after: str | None = None) -> Iterable[Record]:
        stream = self.source.stream if self.source is not None and self.source.has(shard) else self.stream
        return stream.records(shard.partition("@")[0], after)

    def origins(self, table: Table) -> Origins:
        return Origins(table.name, None if self.source is None else self.source.arn)

    def tables(self, table: Table) -> tuple[Source, ...]:
        """Tables to scan: that of the counts, and the source table."""
        if self.source is None:
            return (Source(table, (PK, SK)),)
        foreign = Source(self.source.table, self.source.key_names, is_foreign=True)
        return Source(table, (PK, SK), is_foreign=False), foreign


def feeds_of(table: Table, streams: Any) -> Feeds:
    """Find the streams; `streams` is a client of DynamoDB Streams."""
    described: Any = table.client.describe_table(TableName=table.name)
    stream = described["Table"].get("LatestStreamArn")
    if not stream:
        raise BackfillError(f"the table {table.name!r} has no stream")
    is_emulated = EMULATOR_HEADER in described.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    arn = read_control(table).source
    source = SourceTable.described(table.client, streams, arn) if arn else None
    return Feeds(StreamReader(streams, stream, table.sleep), source, ONE_CLOCK if is_emulated else CLOCKS)


class ServiceTime:
    """The time in the headers of DynamoDB's answers, by which records are created; the local time if they have none."""

    def __init__(self, table: Table, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self._monotonic = monotonic
        self._ahead = self._asked_at = -math.inf

    def __call__(self) -> float:
        if self._monotonic() >= self._asked_at + ASKED_EVERY:
            date = self._date()
            if date is None:
                return self._table.clock()
            # The date is carried on from when it has come: from when it was asked for, it would run ahead.
            self._asked_at = self._monotonic()
            self._ahead = max(self._ahead, date - self._asked_at)
        return self._monotonic() + self._ahead

    def _date(self) -> float | None:
        answer = self._table.client.get_item(TableName=self._table.name, Key=history_key())
        header = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        try:
            return parsedate_to_datetime(header).timestamp() if header else None
        except ValueError:
            return None
