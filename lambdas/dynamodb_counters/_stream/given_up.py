"""What Lambda gave up on, as it lies in the on-failure bucket: one object per batch.

https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._fold.records import Record, padded
from dynamodb_counters.errors import GivenUpError

PREFIX: Final = "aws/lambda/"
"""Lambda's objects: the prefix, the mapping's id, the shard, the date, the time and something random."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A batch of a shard that Lambda gave up on."""

    shard: str
    stream: str
    records: tuple[Record, ...]

    @property
    def place(self) -> tuple[str, str]:
        """The first and the last sequence number: a shard's batches are counted in this order."""
        return padded(self.records[0]["dynamodb"]["SequenceNumber"]), padded(
            self.records[-1]["dynamodb"]["SequenceNumber"]
        )


def read_given_up(body: str | bytes) -> GivenUp:
    """The batch an object holds; GivenUpError if it holds none."""
    try:
        document = json.loads(body)
        payload = document["payload"]
        records = (json.loads(payload) if isinstance(payload, str) else payload)["Records"]
        batch = document["DDBStreamBatchInfo"]
        given_up = GivenUp(str(batch["shardId"]), str(batch["streamArn"]), tuple(records))
        _ = given_up.place
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise GivenUpError(f"not what Lambda writes of a batch of a DynamoDB stream ({type(error).__name__})") from None
    return given_up


class OnFailureBucket:
    """An on-failure bucket, reached by an S3 client."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    def list_keys(self) -> Iterator[str]:
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=PREFIX):
            yield from (found["Key"] for found in page.get("Contents", ()))

    def read(self, key: str) -> GivenUp:
        return read_given_up(self._client.get_object(Bucket=self._name, Key=key)["Body"].read())

    def delete(self, key: str) -> None:
        self._client.delete_object(Bucket=self._name, Key=key)
