"""The switch from versions without checkpoints, whose invocations may still run when this version takes over.

They know only their own format of watermarks. So shards that they have met keep that format for as long as they live,
and so do shards that come up while one of them may still run. They are known by what they wrote: fencing tokens.
Without its token, none of them can quarantine any more; and what it has quarantined, no declaration has counted.
"""

from __future__ import annotations

from typing import Any, Final

from dynamodb_counters._assumptions import LONGEST_INVOCATION, SKEW
from dynamodb_counters._items.table_schema import CHECKPOINT, CHECKPOINT_PREFIX, PK, QUARANTINE, SK, TYPE
from dynamodb_counters._stream.quarantine_items import OLD_PARTITIONS, partition, quarantine_key
from dynamodb_counters._table import Table

STILL_RUNNING: Final = LONGEST_INVOCATION + SKEW

_FENCE_PREFIX: Final = "FENCE#"
_SINCE: Final = {PK: {"S": CHECKPOINT_PREFIX}, SK: {"S": "SINCE"}}


def needs_old_format(table: Table, shard: str) -> bool:
    """Whether a shard without checkpoint may be served by a version without checkpoints, too."""
    may_run_until = _first_met(table) + STILL_RUNNING
    answer = table.client.get_item(TableName=table.name, Key=_token_key(shard), ConsistentRead=True)
    return "Item" in answer or table.clock() < may_run_until


def take_token(table: Table, shard: str) -> None:
    """Let no invocation of an older version quarantine anything more."""
    item: Any = {**_token_key(shard), TYPE: {"S": QUARANTINE}, "deployment": {"S": "superseded"}}
    table.client.put_item(TableName=table.name, Item=item)


def _token_key(shard: str) -> dict[str, Any]:
    key = quarantine_key(shard, "", old_format=True)
    return {PK: key[PK], SK: {"S": f"{_FENCE_PREFIX}{shard}"}}


def _first_met(table: Table) -> float:
    """When checkpoints came to a table that others had served; 0 if none had."""
    answer = table.client.get_item(TableName=table.name, Key=_SINCE, ConsistentRead=True)
    if "Item" not in answer:
        since = str(int(table.clock())) if _was_served(table) else "0"
        item: Any = {**_SINCE, TYPE: {"S": CHECKPOINT}, "since": {"N": since}}
        try:
            table.client.put_item(TableName=table.name, Item=item, ConditionExpression=f"attribute_not_exists({PK})")
        except table.client.exceptions.ConditionalCheckFailedException:
            return _first_met(table)
        return float(since)
    return float(answer["Item"]["since"]["N"])


def _was_served(table: Table) -> bool:
    return any(
        table.client.query(
            TableName=table.name,
            KeyConditionExpression=f"{PK} = :pk AND begins_with({SK}, :prefix)",
            ExpressionAttributeValues={":pk": {"S": partition(number)}, ":prefix": {"S": _FENCE_PREFIX}},
            ConsistentRead=True,
            Limit=1,
        )["Items"]
        for number in range(OLD_PARTITIONS)
    )
