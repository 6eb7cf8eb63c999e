"""A stream that can be read, whatever the engine, and one behind the DynamoDB Streams API."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

from counters_lambda.counting.feeds import Shard, StreamReader
from simulation.memory.memory_stream import Page, Record

if TYPE_CHECKING:
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

_READ_AT_ONCE: Final = 1000


def shard_id(name: str) -> str:
    """Id in its stream of a shard that is named with its table, ``<id>@<table>``, as two streams may share an id."""
    return name.partition("@")[0]


class Source(Protocol):
    """A stream that can be read."""

    @property
    def arn(self) -> str: ...

    def shards(self) -> Sequence[Shard]:
        """All shards, parents before children."""

    def read(self, shard: str, after: str | None, limit: int) -> Page:
        """Return records that follow a sequence number; None is the beginning."""


@dataclass
class ApiSource:
    """A stream behind the API; `amend` changes each record as it is read, for what the engine cannot do itself.

    Records are remembered, so that a redelivery costs no call.
    """

    client: DynamoDBStreamsClient
    arn: str
    amend: Callable[[Record], Record] = lambda record: record
    _records: dict[str, list[Record]] = field(default_factory=dict)
    _indexes: dict[str, dict[str, int]] = field(default_factory=dict)
    _iterators: dict[str, str | None] = field(default_factory=dict)

    def shards(self) -> list[Shard]:
        return StreamReader(self.client, self.arn).shards()

    def read(self, shard: str, after: str | None, limit: int) -> Page:
        records, indexes = self._records.setdefault(shard, []), self._indexes.setdefault(shard, {})
        start = 0 if after is None else indexes[after] + 1
        if shard not in self._iterators:
            self._iterators[shard] = self.client.get_shard_iterator(
                StreamArn=self.arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
        iterator = self._iterators[shard]
        if iterator is not None and len(records) < start + limit:
            try:
                answer = self.client.get_records(ShardIterator=iterator, Limit=_READ_AT_ONCE)
            except self.client.exceptions.TrimmedDataAccessException:
                # DynamoDB Local's iterator into an empty shard is of no use once there are records.
                if records:
                    raise
                del self._iterators[shard]
                return self.read(shard, after, limit)
            for read in answer["Records"]:
                record = self.amend(lambda_record(dict(read), self.arn))
                indexes[record["dynamodb"]["SequenceNumber"]] = len(records)
                records.append(record)
            self._iterators[shard] = answer.get("NextShardIterator")
        stop = start + limit
        return Page(records[start:stop], ended=self._iterators[shard] is None and stop >= len(records))


def lambda_record(record: Record, arn: str) -> Record:
    """Return a record of boto3's in Lambda's form: times as numbers, binary as base64 text, the stream's ARN."""
    return {**json.loads(json.dumps(record, default=_plain)), "eventSourceARN": arn}


def _plain(value: datetime | bytes) -> float | str:
    return value.timestamp() if isinstance(value, datetime) else base64.b64encode(value).decode()
