"""Reading a stream, whatever the engine: shards and records in the form Lambda hands over."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

Record: TypeAlias = dict[str, Any]
"""A stream record as it stands in a Lambda event."""

_READ_AT_ONCE: Final = 1000


class ShardInfo(NamedTuple):
    """A shard, and the one it came from."""

    id: str
    parent: str | None


class Page(NamedTuple):
    """Records read, and whether the shard is closed and has no more."""

    records: list[Record]
    ended: bool


class Source(Protocol):
    """A stream that can be read."""

    @property
    def arn(self) -> str:
        """The stream's ARN."""

    def shards(self) -> Sequence[ShardInfo]:
        """List all shards, parents before children."""

    def read(self, shard: str, after: str | None, limit: int) -> Page:
        """Read records that follow a sequence number; none is the beginning."""


class ApiSource:
    """A stream behind the DynamoDB Streams API.

    What was read is remembered, so that a redelivery costs no call.

    Parameters
    ----------
    client : DynamoDBStreamsClient
        Where to read.
    arn : str
        Which stream.
    amend : callable, optional
        Changes each record as it is read: for what the engine cannot do itself, such as deletions by TTL.
    """

    def __init__(
        self, client: DynamoDBStreamsClient, arn: str, amend: Callable[[Record], Record] = lambda record: record
    ) -> None:
        self._client = client
        self._arn = arn
        self._amend = amend
        self._records: dict[str, list[Record]] = {}
        self._places: dict[str, dict[str, int]] = {}
        self._iterators: dict[str, str | None] = {}

    @property
    def arn(self) -> str:
        """The stream's ARN."""
        return self._arn

    def shards(self) -> list[ShardInfo]:
        """List all shards, parents before children."""
        found: dict[str, ShardInfo] = {}
        start: dict[str, Any] = {}
        while True:
            described = self._client.describe_stream(StreamArn=self._arn, **start)["StreamDescription"]
            for shard in described["Shards"]:
                found[shard["ShardId"]] = ShardInfo(shard["ShardId"], shard.get("ParentShardId"))
            if "LastEvaluatedShardId" not in described:
                break
            start = {"ExclusiveStartShardId": described["LastEvaluatedShardId"]}
        return sorted(found.values(), key=lambda shard: _depth(found, shard))

    def read(self, shard: str, after: str | None, limit: int) -> Page:
        """Read records that follow a sequence number; none is the beginning."""
        records, places = self._records.setdefault(shard, []), self._places.setdefault(shard, {})
        start = 0 if after is None else places[after] + 1
        if shard not in self._iterators:
            self._iterators[shard] = self._client.get_shard_iterator(
                StreamArn=self._arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
        iterator = self._iterators[shard]
        if iterator is not None and len(records) < start + limit:
            answer = self._client.get_records(ShardIterator=iterator, Limit=_READ_AT_ONCE)
            for read in answer["Records"]:
                record = self._amend(lambda_record(dict(read), self._arn))
                places[record["dynamodb"]["SequenceNumber"]] = len(records)
                records.append(record)
            self._iterators[shard] = answer.get("NextShardIterator")
        stop = start + limit
        return Page(records[start:stop], ended=self._iterators[shard] is None and stop >= len(records))


def lambda_record(record: Record, arn: str) -> Record:
    """Turn a record of the DynamoDB Streams API into the form Lambda hands over.

    Parameters
    ----------
    record : dict
        As boto3 returns it.
    arn : str
        The stream's.

    Returns
    -------
    dict
        Times as numbers, binary as base64 text, and the stream's ARN.
    """
    plain: Record = _plain(record)
    return {**plain, "eventSourceARN": arn}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return value


def _depth(shards: dict[str, ShardInfo], shard: ShardInfo) -> int:
    depth = 0
    while shard.parent in shards:
        shard = shards[shard.parent]
        depth += 1
    return depth
