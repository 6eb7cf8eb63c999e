"""What feeds a run: the streams, each item's contribution page by page, and how far each group's item is applied.

The streams are the table's own, and that of a source table, which is read and never written; each is read from a
shard's oldest record to its end, as Lambda would deliver it. Each page of a scan is sealed before the next is read, at
the pace of the units a second that a run may consume.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from counters_lambda.counting import run_logs
from counters_lambda.counting.commit import Checkpoint, checkpoint_key, checkpoint_of
from counters_lambda.counting.run_logs import MOST_BYTES, ROWS, RunRow, is_bookkeeping, is_filled, scan_partition
from dynamodb_counters._assumptions import CLOCKS, ONE_CLOCK
from dynamodb_counters._fold.fold import InvalidImage, folded_alone, sums_of
from dynamodb_counters._fold.layouts import group_of_item
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Origins, Record, created_of, stream_number
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.schema import BASELINE, PK, SK, TYPE, item_bytes, put_as_seen, sequence_of, write_units
from dynamodb_counters._quarantine import PROVISIONAL, Quarantine
from dynamodb_counters._reads.group_reads import Lookup, read_items
from dynamodb_counters._registry import Run, header_key, read_registry
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError
from dynamodb_counters.exactly_once import WATERMARK_PREFIX, Watermark, shard_digest

if TYPE_CHECKING:
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient


EMULATOR_HEADER: Final = "x-counters-dev"  # In the answers of an emulator that alone counts its tables, not of AWS.
ASKED_EVERY: Final = 5.0  # Seconds; a monotonic clock measures the time in between.
_PAUSE: Final = 0.2  # A shard takes five requests per second.


@dataclass(frozen=True, slots=True)
class Shard:
    id: str
    parent: str  # "" if none is known any more.
    is_open: bool


def depth_of(shard: str, parents: Mapping[str, str]) -> int:
    """Return how many generations come before a shard: parents are delivered before children."""
    parent = parents.get(shard, "")
    return 1 + depth_of(parent, parents) if parent in parents else 0


@dataclass(frozen=True, slots=True)
class StreamReader:
    client: DynamoDBStreamsClient
    arn: str
    sleep: Callable[[float], None] = time.sleep
    quiet_pages: int = 10  # After so many empty ones, an open shard is taken to have no more: nothing else shows it.

    def shards(self) -> list[Shard]:
        """Return the shards that DynamoDB describes, those of the last 24 hours; parents before children."""
        shards: dict[str, Shard] = {}
        start: Any = {}
        while True:
            described = self.client.describe_stream(StreamArn=self.arn, **start)["StreamDescription"]
            for shard in described["Shards"]:
                is_open = "EndingSequenceNumber" not in shard.get("SequenceNumberRange", {})
                shards[shard["ShardId"]] = Shard(shard["ShardId"], shard.get("ParentShardId", ""), is_open)
            if "LastEvaluatedShardId" not in described:
                break
            start = {"ExclusiveStartShardId": described["LastEvaluatedShardId"]}
        parents = {shard.id: shard.parent for shard in shards.values()}
        return sorted(shards.values(), key=lambda shard: depth_of(shard.id, parents))

    def records(self, shard: str, after: str | None = None) -> Iterator[Record]:
        """Yield those of a shard from after a sequence number on; all, if the stream has forgotten that one."""
        request: Any = {"StreamArn": self.arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
        begin = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": stream_number(after)} if after else {}
        try:
            iterator: str | None = self.client.get_shard_iterator(**request | begin).get("ShardIterator")
        except self.client.exceptions.TrimmedDataAccessException:
            iterator = self.client.get_shard_iterator(**request).get("ShardIterator")
        quiet = 0
        while iterator is not None and quiet < self.quiet_pages:
            page = self.client.get_records(ShardIterator=iterator)
            for record in page["Records"]:
                created = record["dynamodb"]["ApproximateCreationDateTime"].timestamp()
                dated = {**record["dynamodb"], "ApproximateCreationDateTime": created}
                yield {**record, "eventSourceARN": self.arn, "dynamodb": dated}
            iterator = page.get("NextShardIterator")
            quiet = 0 if page["Records"] else quiet + 1
            if quiet:
                self.sleep(_PAUSE)


def units_of(answer: Mapping[str, Any]) -> float:
    return float(answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0))


def scan_page(table: Table, segment: int, segments: int, start: Any, **options: Any) -> Mapping[str, Any]:
    """Return a page of a segment, strongly consistent unless options say otherwise, with what it has consumed."""
    parallel: Any = {"TableName": table.name, "Segment": segment, "TotalSegments": segments}
    request = {"ConsistentRead": True, **options} | ({"ExclusiveStartKey": start} if start else {})
    return table.client.scan(ReturnConsumedCapacity="TOTAL", **parallel, **request)


class ReadGroup(NamedTuple):
    items: list[Image]
    applied: dict[str, str]  # By shard, the last record that the items have applied for certain.


def read_checkpoint(table: Table, shard: str) -> Checkpoint:
    return checkpoint_of(table.read_item(checkpoint_key(shard_digest(shard))))


def read_groups(table: Table, lookups: Sequence[Lookup], shards: Iterable[str]) -> list[ReadGroup]:
    """Read groups after checkpoints: what a checkpoint covers, their items have applied."""
    through = {shard: read_checkpoint(table, shard).applied_through for shard in shards}
    names = {shard: Watermark(shard).name for shard in through}
    groups: list[ReadGroup] = []
    for items in read_items(table, lookups, consistent=True):
        marks = {shard: [sequence_of(item[name]) for item in items if name in item] for shard, name in names.items()}
        groups.append(ReadGroup(items, {shard: max([through[shard], *marks[shard]]) for shard in through}))
    return groups


@dataclass(slots=True)
class _Segment:
    number: int
    page: int = 0
    start: dict[str, Any] | None = None
    is_done: bool = False
    items: int = 0
    limit: int = 0

    def adopt(self, page: Image) -> None:
        self.page, self.items = int(page["page"]["N"]) + 1, int(page["items"]["N"])
        self.start, self.is_done = dict(page["end"]["M"]) if "end" in page else None, "end" not in page


@dataclass(frozen=True, slots=True)
class Source:
    table: Table
    key_names: tuple[str, ...]
    is_foreign: bool | None = None  # As of a `Change`.


class LeftOver(Exception):  # noqa: N818 - no fault: the run begins anew
    """A name that a run fills has an item that was counted before it was registered."""


@dataclass(slots=True)
class Scan:
    """Scans a source in parallel segments, strongly consistent, for one run."""

    table: Table
    sources: tuple[Source, ...]
    run: Run
    plan: Plan
    segments: int
    page_items: int
    quarantine: Quarantine
    spend: Callable[[float], None]

    def rounds(self) -> Iterator[int]:
        """Read a page of each segment at a time, side by side; yield how many items were read."""
        count = self.segments * len(self.sources)
        segments = pending = [_Segment(number, limit=self.page_items) for number in range(count)]
        self.table.each(self._resume, segments)
        while pending:
            pending = [segment for segment in pending if not segment.is_done]
            yield sum(segment.items for segment in segments)
            self.spend(sum(self.table.each(self._advance, pending)))

    def _resume(self, segment: _Segment) -> None:
        pk = scan_partition(self.run.id, segment.number)
        for page in self.table.last_of(pk, 1, ("page", "end", "items")):
            segment.adopt(page)

    def _advance(self, segment: _Segment) -> float:
        """Seal the next page of a segment; return the units that it took."""
        source = self.sources[segment.number // self.segments]
        number = segment.number % self.segments
        answer = scan_page(source.table, number, self.segments, segment.start, Limit=segment.limit)
        units = units_of(answer)
        if "LastEvaluatedKey" in answer and not source.is_foreign and all(map(is_bookkeeping, answer["Items"])):
            # Not sealed: the scan would meet the page, seal that, and so on without end.
            segment.start = answer["LastEvaluatedKey"]
            return units
        invalid: list[InvalidImage] = []
        rows = run_logs.pack_rows(self.rows(source, answer["Items"], invalid))
        if len(rows) > MOST_BYTES:
            if segment.limit == 1:
                raise BackfillError(f"an item contributes to too many groups: {len(rows)} bytes")
            segment.limit = max(1, segment.limit // 2)
            return units
        for image in invalid:
            # Before the page that names them.
            self.quarantine.keep_one(run_logs.found_by(self.run.id), image, PROVISIONAL)
        # With the number of items up to it; the last page of its segment, unless it says where that ends.
        values = {"page": segment.page, "items": segment.items + len(answer["Items"]), ROWS: rows}
        key = run_logs.page_key(scan_partition(self.run.id, segment.number), f"{segment.page:08}")
        item = run_logs.run_item(key, values, self.table.clock())
        if "LastEvaluatedKey" in answer:
            item["end"] = {"M": answer["LastEvaluatedKey"]}
        # Everybody goes on from the page that stands: two workers, or one that was killed and its successor.
        if self.table.write("put_item", **put_as_seen(self.table.name, item, {}, ())):
            segment.adopt(item)
        else:
            self._resume(segment)
        return units + len(invalid) + write_units(item_bytes(item))

    def rows(self, source: Source, items: Sequence[Image], invalid: list[InvalidImage]) -> Iterator[RunRow]:
        """Yield what items contribute; what cannot be folded of them is added to `invalid`."""
        names = frozenset(self.run.names)
        for item in items:
            if not source.is_foreign and (is_bookkeeping(item) or is_filled(self.run, item)):
                # Only transactions have counted in it: no run has filled it, and no stream.
                is_own = any(name == BASELINE or name.startswith(WATERMARK_PREFIX) for name in item)
                if is_filled(self.run, item) and not is_own:
                    raise LeftOver(item[TYPE]["S"])
                continue
            keys = {name: item[name] for name in source.key_names}
            since, is_foreign, origin = self.run.since, source.is_foreign, source.table.name
            folded = folded_alone(self.plan, names, item, since, is_foreign=is_foreign, keys=keys, origin=origin)
            digest = run_logs.item_digest(keys, is_foreign=bool(source.is_foreign))
            waiting = folded.invalid if self.run.kind == "backfill" else ()
            lacking = [replace(image, image_name=f"{digest}#{image.image_name}") for image in waiting]
            invalid += lacking
            if (sums := sums_of(folded)) or lacking:
                yield RunRow(digest, sums, tuple(image.entry_id for image in lacking))
            if self.run.kind == "verify" and not source.is_foreign and item.get(TYPE, {}).get("S") in names:
                # A group is compared though nothing may contribute to it.
                layout = self.plan.programs[item[TYPE]["S"]].layout
                groups = [group_of_item(layout.declaration, image) for image in layout.images(item)]
                yield from (RunRow("", {(layout.name, group): {}}) for group in groups if group is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable(Source):
    """The source table of an aggregator, called by its ARN, and a reader of its stream."""

    stream: StreamReader
    is_foreign: bool | None = True

    @classmethod
    def described(cls, client: Any, streams: Any, arn: str) -> SourceTable:
        table = client.describe_table(TableName=arn)["Table"]
        if table.get("StreamSpecification", {}).get("StreamViewType") != "NEW_AND_OLD_IMAGES":
            raise BackfillError(f"invalid source table {arn}: expected a stream of new and old images")
        names = tuple(key["AttributeName"] for key in table["KeySchema"])
        # No heartbeat but its stream itself shows what is not logged yet.
        return cls(table=Table(arn, client), key_names=names, stream=StreamReader(streams, table["LatestStreamArn"]))

    @property
    def _suffix(self) -> str:
        return f"@{self.table.name.rpartition('/')[2]}"

    def has(self, shard: str) -> bool:
        """Return whether a shard, as the aggregator calls it, is of this table."""
        return shard.endswith(self._suffix)

    def shards(self) -> list[Shard]:
        end, shards = self._suffix, self.stream.shards()
        return [Shard(shard.id + end, shard.parent and shard.parent + end, shard.is_open) for shard in shards]

    def has_more(self, shard: str, logged: str, since: float, until: float) -> bool:
        """Return whether a shard holds records of a time that come after the last one logged."""
        # The stream forgets a shard after a day.
        with suppress(self.stream.client.exceptions.ResourceNotFoundException):
            for record in self.stream.records(shard.removesuffix(self._suffix), logged.lstrip("0")):
                if created_of(record) >= since:
                    return created_of(record) <= until
        return False


class Feeds(NamedTuple):
    stream: StreamReader
    source: SourceTable | None = None
    clocks: float = CLOCKS  # Any two differ by less.

    def shards(self) -> list[Shard]:
        return [*self.stream.shards(), *(self.source.shards() if self.source is not None else ())]

    def records(self, shard: str, after: str) -> Iterator[Record]:
        """Return those of a shard, as the aggregator calls it, after a padded sequence number; "" for all."""
        stream = self.source.stream if self.source is not None and self.source.has(shard) else self.stream
        return stream.records(shard.partition("@")[0], after.lstrip("0"))

    def is_foreign(self, shard: str) -> bool | None:
        """Return whether a shard is of the source table, as of a `Change`."""
        return None if self.source is None else self.source.has(shard)

    def origins(self, table: Table) -> Origins:
        return Origins(table.name, None if self.source is None else self.source.table.name)

    def tables(self, table: Table) -> tuple[Source, ...]:
        own = Source(table, (PK, SK), is_foreign=None if self.source is None else False)
        return (own,) if self.source is None else (own, self.source)


def is_emulated(described: Mapping[str, Any]) -> bool:
    """Return whether DescribeTable's answer is of the emulator in which all processes have one clock."""
    return EMULATOR_HEADER in described.get("ResponseMetadata", {}).get("HTTPHeaders", {})


def feeds_of(table: Table, streams: Any) -> Feeds:
    """Find the streams; `streams` is a client of DynamoDB Streams."""
    described: Any = table.client.describe_table(TableName=table.name)
    stream = described["Table"].get("LatestStreamArn")
    if not stream:
        raise BackfillError(f"the table {table.name!r} has no stream")
    arn = read_registry(table).source
    source = SourceTable.described(table.client, streams, arn) if arn else None
    return Feeds(StreamReader(streams, stream, table.sleep), source, ONE_CLOCK if is_emulated(described) else CLOCKS)


class ServiceTime:
    """The time in the headers of DynamoDB's answers, by which records are created; the local time if they have none."""

    def __init__(self, table: Table, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._table, self._monotonic = table, monotonic
        self._ahead = self._asked_at = -math.inf

    def __call__(self) -> float:
        if self._monotonic() >= self._asked_at + ASKED_EVERY:
            answer: Any = self._table.client.get_item(TableName=self._table.name, Key=header_key())
            try:
                date = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()
            except (LookupError, ValueError):
                return self._table.clock()
            # The date is carried on from when it has come: from when it was asked for, it would run ahead.
            self._asked_at = self._monotonic()
            self._ahead = max(self._ahead, date - self._asked_at)
        return self._monotonic() + self._ahead
