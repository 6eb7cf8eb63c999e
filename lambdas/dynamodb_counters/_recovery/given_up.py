"""Batches that Lambda gave up on, as they lie in the on-failure bucket: one object per batch.

https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from dynamodb_counters._assumptions import BOOK_OPEN_AFTER
from dynamodb_counters._fold.records import NEW, OLD, Record, created_of, sequence_number
from dynamodb_counters._quarantine.waiting import PREFIX
from dynamodb_counters.errors import GivenUpError

_BEGINNING: Final = "1970-01-01T00:00:00Z"

_MOST_SECONDS: Final = 10**11
"""Most seconds of a time since 1970: longer than a calendar lasts."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A batch of a shard that Lambda gave up on."""

    shard: str
    stream: str
    records: tuple[Record, ...]
    at: float = 0.0
    """When Lambda gave up, in seconds since 1970; 0 if the object does not say."""

    @property
    def is_early(self) -> bool:
        """Whether later records may have been counted in its book, which another one begins after only at that age."""
        return self.at < created_of(self.records[0]) + BOOK_OPEN_AFTER

    @property
    def place(self) -> tuple[str, str]:
        """The first and the last sequence number: a shard's batches are counted in this order."""
        return sequence_number(self.records[0]), sequence_number(self.records[-1])


def read_given_up(body: str | bytes) -> GivenUp:
    """The batch an object holds; GivenUpError if it holds none."""
    try:
        document = json.loads(body)
        payload = document["payload"]
        records = (json.loads(payload) if isinstance(payload, str) else payload)["Records"]
        batch = document["DDBStreamBatchInfo"]
        at = datetime.fromisoformat(str(document.get("timestamp", _BEGINNING))).timestamp()
        return GivenUp(str(batch["shardId"]), str(batch["streamArn"]), _in_order(records), at)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise GivenUpError(f"not what Lambda writes of a batch of a DynamoDB stream ({type(error).__name__})") from None


def _in_order(records: Any) -> tuple[Record, ...]:
    """The records, if the aggregator can take them for a batch."""
    numbers = [sequence_number(record) for record in records]
    if not numbers or any(later <= number for number, later in pairwise(numbers)):
        raise ValueError("not ascending")
    if not all(0 <= record["dynamodb"]["ApproximateCreationDateTime"] < _MOST_SECONDS for record in records):
        raise ValueError("not a time")
    if not all(_is_image(record["dynamodb"].get(name, {})) for record in records for name in (NEW, OLD)):
        raise ValueError("not an image")
    return tuple(records)


def _is_image(image: Any) -> bool:
    return all(isinstance(value.get(kind, ""), str) for value in image.values() for kind in ("S", "N", "B"))


class OnFailureBucket:
    def __init__(self, client: Any, name: str) -> None:
        self._client, self._name = client, name

    def list_keys(self) -> Iterator[str]:
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=PREFIX):
            yield from (found["Key"] for found in page.get("Contents", ()))

    def read(self, key: str) -> GivenUp:
        return read_given_up(self._client.get_object(Bucket=self._name, Key=key)["Body"].read())

    def delete(self, key: str) -> None:
        self._client.delete_object(Bucket=self._name, Key=key)
