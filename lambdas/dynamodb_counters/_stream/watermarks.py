"""Watermarks: the last record of each stream shard that an item has applied. Per item and shard; not event time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from dynamodb_counters._items.table_schema import SEQUENCE_DIGITS, STREAM_RETENTION_HOURS, WATERMARK_PREFIX
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import HOUR

KEPT_HOURS: Final = STREAM_RETENTION_HOURS + 6
"""A record leaves the stream after 24 hours and cannot come again; the rest is for clock skew and late retries."""

PRUNED_AT: Final = 4
"""Prune once this many are stale: about one write per day and stream partition."""

_MAX_PRUNED: Final = 50  # an expression is 4 KB at most
_SHARD_PREFIX: Final = "shardId-"


def watermark_name(shard: str) -> str:
    """Attribute name of a shard's watermark; without the constant prefix, as every item pays for the name.

    >>> watermark_name("shardId-00000001414576573621-f55eea83")
    '_w:1414576573621-f55eea83'
    """
    return WATERMARK_PREFIX + shard.removeprefix(_SHARD_PREFIX).lstrip("0")


def watermark(sequence: str, hour: int) -> str:
    """Padded sequence number, then the hour (since 1970) that tells when to prune; sorts by the number."""
    return f"{sequence}@{hour}"


def prune(table: Table, key: Mapping[str, Any], item: Mapping[str, Any], current: str) -> float:
    """Remove stale watermarks from the item just written, except the `current` one; return the write units."""
    if len(item) < PRUNED_AT:
        return 0.0  # By far the usual case: the write asked for no attributes.
    oldest = int(table.clock()) // HOUR - KEPT_HOURS
    stale = {
        name: value
        for name, value in item.items()
        if name.startswith(WATERMARK_PREFIX) and name != current and int(value["S"][SEQUENCE_DIGITS + 1 :]) < oldest
    }
    if len(stale) < PRUNED_AT:
        return 0.0
    stale = dict(list(stale.items())[:_MAX_PRUNED])
    names = {f"#w{index}": name for index, name in enumerate(stale)}
    try:
        answer = table.client.update_item(
            TableName=table.name,
            Key=dict(key),
            UpdateExpression="REMOVE " + ", ".join(names),
            # Only what was seen is removed: a shard that came alive in between keeps its watermark.
            ConditionExpression=" AND ".join(f"#w{index} = :w{index}" for index in range(len(stale))),
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={f":w{index}": value for index, value in enumerate(stale.values())},
            ReturnConsumedCapacity="TOTAL",
        )
    except ClientError:
        # Housekeeping: the item's next update tries again.
        return 1.0
    return answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
