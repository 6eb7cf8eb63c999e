"""Wiring of a run: the parts that it needs, looked up from its table, and DynamoDB's time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple, TypeVar

from dynamodb_counters._assumptions import CLOCKS, KNOWN_AT_ONCE, ONE_CLOCK
from dynamodb_counters._backfill.runner import Runner
from dynamodb_counters._backfill.source_table import SourceTable
from dynamodb_counters._control.control import read_control
from dynamodb_counters._control.deployment_items import history_key
from dynamodb_counters._fold.records import Record
from dynamodb_counters._streams import Shard, StreamReader
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError

EMULATOR_HEADER: Final = "x-counters-dev"
"""In each answer of an emulator that alone runs what counts its tables; AWS sends none."""

ASKED_EVERY: Final = 5.0
"""Seconds; a monotonic clock measures the time in between."""

Kind = TypeVar("Kind", bound=Runner)


class ServiceTime:
    """The time in the headers of DynamoDB's answers, by which records are created; the local time if they have none."""

    def __init__(self, table: Table, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self._monotonic = monotonic
        self._told = 0.0
        self._told_at: float | None = None

    def __call__(self) -> float:
        if self._told_at is None or self._monotonic() >= self._told_at + ASKED_EVERY:
            date = self._date()
            if date is None:
                return self._table.clock()
            # The date is carried on from when it has come: from when it was asked for, it would run ahead.
            at = self._monotonic()
            self._told, self._told_at = max(date, self._carried_on(at)), at
        return self._carried_on(self._monotonic())

    def _carried_on(self, at: float) -> float:
        return 0.0 if self._told_at is None else self._told + at - self._told_at

    def _date(self) -> float | None:
        answer = self._table.client.get_item(TableName=self._table.name, Key=history_key())
        header = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        try:
            return parsedate_to_datetime(header).timestamp() if header else None
        except ValueError:
            return None


class Feeds(NamedTuple):
    """The streams that feed the counts, read: the table's own, and that of the source table if there is one."""

    stream: StreamReader
    source: SourceTable | None
    clocks: float = CLOCKS
    quick: bool = False
    """Whether what was written just now may be missing."""

    def shards(self) -> list[Shard]:
        """All shards as the aggregator calls them."""
        return [*self.stream.shards(), *(self.source.shards() if self.source is not None else ())]

    def records(self, shard: str, after: str | None = None) -> Iterable[Record]:
        name, mark, _ = shard.partition("@")
        stream = self.source.stream if mark and self.source is not None else self.stream
        return stream.records(name, after)


_QUICK: Final = 3.0
_QUICK_PAGES: Final = 5


def feeds_of(table: Table, streams: Any, *, quick: bool = False) -> Feeds:
    """Find the streams; `streams` is a client of DynamoDB Streams.

    If `quick`, the table's own stream alone, for events, read for those who wait for an answer.
    """
    described: Any = table.client.describe_table(TableName=table.name)
    stream = described["Table"].get("LatestStreamArn")
    if not stream:
        raise BackfillError(f"the table {table.name!r} has no stream")
    is_emulated = EMULATOR_HEADER in described.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    if quick:
        reader = StreamReader(streams, stream, quiet_pages=_QUICK_PAGES)
        return Feeds(reader, None, ONE_CLOCK if is_emulated else _QUICK, quick)
    arn = read_control(table).source
    source = SourceTable.described(table.client, streams, arn) if arn else None
    return Feeds(StreamReader(streams, stream), source, ONE_CLOCK if is_emulated else CLOCKS)


def make_runner(
    kind: type[Kind], table: Table, streams: Any, *, now: Callable[[], float] | None = None, **options: Any
) -> Kind:
    """Make what works on a run; `now` is DynamoDB's time if not its own."""
    feeds = feeds_of(table, streams)
    if feeds.clocks == ONE_CLOCK:
        options |= {"clocks": ONE_CLOCK, "open_after": KNOWN_AT_ONCE}
    return kind(table=table, shards=feeds.stream.shards, now=now or ServiceTime(table), source=feeds.source, **options)
