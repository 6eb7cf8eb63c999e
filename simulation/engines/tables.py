"""The table tests create on every engine: same schema as the one the constructs provision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def create_table(
    client: DynamoDBClient,
    name: str = "counters",
    *,
    expires: bool = True,
    keys: Sequence[str] = ("pk", "sk"),
    ttl: str = "ttl",
    streams: bool = True,
) -> str:
    """Create the single table and return its stream's ARN; with `expires`, the engine applies TTL by its own clock."""
    kinds: Any = zip(keys, ("HASH", "RANGE"), strict=False)
    stream: Any = {"StreamEnabled": streams} | ({"StreamViewType": "NEW_AND_OLD_IMAGES"} if streams else {})
    client.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in kinds],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification=stream,
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
    if expires:
        client.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": ttl})
    return client.describe_table(TableName=name)["Table"].get("LatestStreamArn", "")
