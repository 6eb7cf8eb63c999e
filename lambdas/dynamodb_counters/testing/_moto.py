"""Tables in moto: their items, the records of their streams, and the expiry that moto leaves out."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import Any, Final

import boto3
from botocore.config import Config

from dynamodb_counters._fold.records import MAX_TTL_AGE, Record
from dynamodb_counters._items.table_schema import LEADERBOARD, PK, RANKING_INDEX, SCORE, SK

try:
    from moto import mock_aws as mock_aws  # noqa: PLC0414
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.dynamodb.models import dynamodb_backends
except ImportError as missing:
    needed = 'counters in memory need moto: pip install "cdk-dynamodb-counters[testing]"'
    raise ImportError(needed) from missing

_REGION: Final = "us-east-1"
_TTL_IDENTITY: Final = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
_INDEX: Final = {
    "IndexName": RANKING_INDEX,
    "Projection": {"ProjectionType": "KEYS_ONLY"},
    "KeySchema": [{"AttributeName": LEADERBOARD, "KeyType": "HASH"}, {"AttributeName": SCORE, "KeyType": "RANGE"}],
}

# moto does not know addresses that carry an account id.
_CONFIG: Final = Config(account_id_endpoint_mode="disabled", retries={"total_max_attempts": 1})


@cache
def _session() -> boto3.Session:
    return boto3.Session("testing", "testing", region_name=_REGION)


def make_client() -> Any:
    """Make a client of what moto stands for."""
    return _session().client("dynamodb", config=_CONFIG)


def make_resource(name: str) -> Any:
    """Make boto3's resource of a table."""
    return _session().resource("dynamodb", config=_CONFIG).Table(name)


@dataclass
class MotoTable:
    """A table with a stream of one shard."""

    name: str
    keys: tuple[str, ...]
    ttl: str
    client: Any
    clock: Callable[[], float]
    stream_arn: str
    shard: str
    read: int = 0
    """The number of records of its stream that were read."""

    @classmethod
    def create(cls, client: Any, keys: tuple[str, ...], ttl: str, clock: Callable[[], float]) -> MotoTable:
        """Create a table under a new name; that of the counts has its index."""
        name = f"counters-{uuid.uuid4().hex[:8]}"
        types = dict.fromkeys(keys, "S")
        more: dict[str, Any] = {}
        if keys == (PK, SK):
            types |= {LEADERBOARD: "S", SCORE: "N"}
            more["GlobalSecondaryIndexes"] = [_INDEX]
        created = client.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": each, "AttributeType": kind} for each, kind in types.items()],
            KeySchema=[
                {"AttributeName": each, "KeyType": kind} for each, kind in zip(keys, ("HASH", "RANGE"), strict=False)
            ],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            **more,
        )
        arn = created["TableDescription"]["LatestStreamArn"]
        return cls(name, keys, ttl, client, clock, arn, _backend(name).stream_shard.id)

    def items(self) -> list[dict[str, Any]]:
        """Return all items."""
        return [item.to_json()["Attributes"] for item in _backend(self.name).all_items()]

    def new_records(self) -> list[Record]:
        """Return the records that have come since the last call."""
        # What a failed transaction has written is gone with its records: moto puts back the table as it was.
        stored = _backend(self.name).stream_shard.items
        fresh = [each.record for each in stored[self.read :]]
        self.read = len(stored)
        return [self._record(record) for record, after in zip_longest(fresh, fresh[1:]) if _stands(record, after)]

    def next_expiry(self, now: float) -> float:
        """Return when the next item expires: now, if its TTL is over; infinity if none does."""
        return min((max(self._expires(item, now), now) for item in self.items()), default=math.inf)

    def expire(self, now: float) -> list[dict[str, Any]]:
        """Delete items whose TTL is over, as DynamoDB does in the background; return them."""
        due = [item for item in self.items() if self._expires(item, now) <= now]
        for item in due:
            self.client.delete_item(TableName=self.name, Key={name: item[name] for name in self.keys})
            _backend(self.name).stream_shard.items[-1].record["userIdentity"] = _TTL_IDENTITY
        return due

    def _expires(self, item: dict[str, Any], now: float) -> float:
        """Return its TTL; DynamoDB leaves alone what is no number, or lies five years back."""
        ttl = float(item.get(self.ttl, {}).get("N", math.inf))
        return ttl if ttl > now - MAX_TTL_AGE else math.inf

    def _record(self, record: Record) -> Record:
        dated = {**record["dynamodb"], "ApproximateCreationDateTime": float(int(self.clock()))}
        return {**record, "eventSourceARN": self.stream_arn, "dynamodb": dated}


def _stands(record: Record, after: Record | None) -> bool:
    """Whether DynamoDB would have written this record of moto's, too.

    moto inserts an item that an update creates in two records, and has a record of a write that changes nothing.
    """
    change = record["dynamodb"]
    if record["eventName"] == "MODIFY":
        return bool(change["OldImage"] != change["NewImage"])
    is_first_of_two = (
        after is not None
        and record["eventName"] == after["eventName"] == "INSERT"
        and change["Keys"] == after["dynamodb"]["Keys"]
    )
    return not is_first_of_two


def _backend(name: str) -> Any:
    return dynamodb_backends[DEFAULT_ACCOUNT_ID][_REGION].tables[name]
