"""Streams, read from a shard's oldest record to its end as Lambda would deliver it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dynamodb_counters._fold.records import Record, stream_number

if TYPE_CHECKING:
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

_PAUSE: Final = 0.2  # A shard takes five requests per second.


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard; `parent` is "" if none is known any more."""

    id: str
    parent: str
    is_open: bool


def depth_of(shard: str, parents: Mapping[str, str]) -> int:
    """How many generations of shards come before a shard: parents are delivered before children."""
    parent = parents.get(shard, "")
    return 1 + depth_of(parent, parents) if parent in parents else 0


@dataclass(frozen=True, slots=True)
class StreamReader:
    """One stream; `sleep` is injected by tests.

    After `quiet_pages` empty ones in a row an open shard is taken to have no more: nothing else shows it.
    """

    client: DynamoDBStreamsClient
    arn: str
    sleep: Callable[[float], None] = time.sleep
    quiet_pages: int = 50

    def shards(self) -> list[Shard]:
        """The shards that DynamoDB describes, those of the last 24 hours; parents before children."""
        found: dict[str, Shard] = {}
        more: Any = {}
        while True:
            described = self.client.describe_stream(StreamArn=self.arn, **more)["StreamDescription"]
            for shard in described["Shards"]:
                is_open = "EndingSequenceNumber" not in shard.get("SequenceNumberRange", {})
                found[shard["ShardId"]] = Shard(shard["ShardId"], shard.get("ParentShardId", ""), is_open)
            if "LastEvaluatedShardId" not in described:
                break
            more = {"ExclusiveStartShardId": described["LastEvaluatedShardId"]}
        parents = {shard.id: shard.parent for shard in found.values()}
        return sorted(found.values(), key=lambda shard: depth_of(shard.id, parents))

    def records(self, shard: str, after: str | None = None) -> Iterator[Record]:
        """Those of a shard, all or from after a sequence number on.

        All that are left, if the stream has forgotten that one.
        """
        asked: Any = {"StreamArn": self.arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
        begin = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": stream_number(after)} if after else {}
        try:
            iterator: str | None = self.client.get_shard_iterator(**asked | begin).get("ShardIterator")
        except self.client.exceptions.TrimmedDataAccessException:
            iterator = self.client.get_shard_iterator(**asked).get("ShardIterator")
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
