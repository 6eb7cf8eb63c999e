"""Reads a stream from its oldest record to its end, as Lambda would deliver it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from dynamodb_counters._fold.records import Record

if TYPE_CHECKING:
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

_QUIET_PAGES: Final = 50
"""Empty pages in a row after which an open shard is taken to have no more: nothing else shows it."""

_PAUSE: Final = 0.2  # A shard takes five requests per second.


class StreamReader:
    """One stream; `sleep` is injected by tests."""

    def __init__(self, client: DynamoDBStreamsClient, arn: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client, self._arn, self._sleep = client, arn, sleep

    def shards(self) -> list[str]:
        """All shards, parents before children."""
        parents: dict[str, str] = {}
        more: Any = {}
        while True:
            described = self._client.describe_stream(StreamArn=self._arn, **more)["StreamDescription"]
            parents |= {shard["ShardId"]: shard.get("ParentShardId", "") for shard in described["Shards"]}
            if "LastEvaluatedShardId" not in described:
                break
            more = {"ExclusiveStartShardId": described["LastEvaluatedShardId"]}

        def depth(shard: str) -> int:
            return 1 + depth(parents[shard]) if parents[shard] in parents else 0

        return sorted(parents, key=depth)

    def records(self, shard: str, after: str | None = None, most_pages: float = math.inf) -> Iterator[Record]:
        """Those of a shard, all or from after a sequence number on, on no more than so many pages."""
        asked: Any = {"StreamArn": self._arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
        if after is not None:
            asked |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
        iterator: str | None = self._client.get_shard_iterator(**asked).get("ShardIterator")
        quiet = 0
        while iterator is not None and quiet < _QUIET_PAGES and most_pages > 0:
            most_pages -= 1
            page = self._client.get_records(ShardIterator=iterator)
            for record in page["Records"]:
                created = record["dynamodb"]["ApproximateCreationDateTime"].timestamp()
                dated = {**record["dynamodb"], "ApproximateCreationDateTime": created}
                yield {**record, "eventSourceARN": self._arn, "dynamodb": dated}
            iterator = page.get("NextShardIterator")
            quiet = 0 if page["Records"] else quiet + 1
            if quiet:
                self._sleep(_PAUSE)
