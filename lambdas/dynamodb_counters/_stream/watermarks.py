"""Watermarks: how far a shard has been applied to an item, and when one may be forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from dynamodb_counters._items.table_schema import SEQUENCE_DIGITS, STREAM_RETENTION_HOURS, WATERMARK_PREFIX
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import HOUR

KEPT_HOURS: Final = STREAM_RETENTION_HOURS + 6
"""A record is gone from the stream after 24 hours and cannot come again; the rest is for clocks and late retries."""

PRUNED_AT: Final = 4
"""So many old watermarks are worth a write of their own: about one a day and stream partition."""

_MOST_AT_ONCE: Final = 50  # an expression is 4 KB at most
_SHARD_PREFIX: Final = "shardId-"


def watermark_name(shard: str) -> str:
    """Name the attribute that holds a shard's watermark.

    Parameters
    ----------
    shard : str
        Shard id as the stream tells it. Its constant beginning is left out, as the name is paid for in every item.

    Returns
    -------
    str
        Attribute name.

    Examples
    --------
    >>> watermark_name("shardId-00000001414576573621-f55eea83")
    '_w:1414576573621-f55eea83'
    """
    return WATERMARK_PREFIX + shard.removeprefix(_SHARD_PREFIX).lstrip("0")


def watermark(sequence: str, hour: int) -> str:
    """Make a watermark.

    Parameters
    ----------
    sequence : str
        Padded sequence number of the last record applied.
    hour : int
        Hours since 1970, kept for `prune`; as they stand behind the number, the order of watermarks is that of the
        numbers.

    Returns
    -------
    str
        ``<sequence>@<hour>``.
    """
    return f"{sequence}@{hour}"


def prune(table: Table, key: Mapping[str, Any], item: Mapping[str, Any], current: str) -> float:
    """Remove an item's watermarks of shards that can deliver nothing any more, once there are some.

    Parameters
    ----------
    table : Table
        Where the item is.
    key : mapping
        Its typed key.
    item : mapping
        The item as it was just written.
    current : str
        Attribute that stays in any case.

    Returns
    -------
    float
        Write units consumed.
    """
    if len(item) < PRUNED_AT:
        return 0.0  # The usual case, by far: nothing was asked for.
    oldest = int(table.clock()) // HOUR - KEPT_HOURS
    old = {
        name: value
        for name, value in item.items()
        if name.startswith(WATERMARK_PREFIX) and name != current and int(value["S"][SEQUENCE_DIGITS + 1 :]) < oldest
    }
    if len(old) < PRUNED_AT:
        return 0.0
    old = dict(list(old.items())[:_MOST_AT_ONCE])
    names = {f"#w{place}": name for place, name in enumerate(old)}
    try:
        answer = table.client.update_item(
            TableName=table.name,
            Key=dict(key),
            UpdateExpression="REMOVE " + ", ".join(names),
            # Only what was seen is removed: a shard that came alive in between keeps its watermark.
            ConditionExpression=" AND ".join(f"#w{place} = :w{place}" for place in range(len(old))),
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={f":w{place}": value for place, value in enumerate(old.values())},
            ReturnConsumedCapacity="TOTAL",
        )
    except ClientError:
        # Housekeeping: whatever hinders it, the next update of the item tries again.
        return 1.0
    return answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
