"""Quarantine in the table: keep records that cannot be folded, list them, release them to be counted after all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters.errors import CommitError
from dynamodb_counters.fold import Unfoldable
from dynamodb_counters.quarantine import (
    PARTITIONS,
    RECORD,
    RELEASED,
    STATE,
    SUM,
    WAITING,
    pack,
    partition,
    partition_of,
    unpack,
)
from dynamodb_counters.schema import PK, QUARANTINE, SK, TTL, TYPE
from dynamodb_counters.store.accept import ACCEPTED, insert
from dynamodb_counters.store.table import Table

_MAX_REASON: Final = 1000


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A record in quarantine.

    Parameters
    ----------
    shard : str
        The stream shard it came from.
    sequence : str
        Its padded sequence number there.
    reason : str
        Why it could not be counted.
    content : dict
        The stream record; or, where an item could not take a sum, declaration, group and numbers.
    released : bool
        Whether it was released to be counted.
    key : tuple of str
        Partition and sort key of the quarantine item.
    """

    shard: str
    sequence: str
    reason: str
    content: dict[str, Any]
    released: bool
    key: tuple[str, str]


def keep(table: Table, shard: str, records: Iterable[Unfoldable], retention_seconds: float) -> int:
    """Keep records; one that is kept already stays as it is.

    Parameters
    ----------
    table : Table
        Where to.
    shard : str
        The shard they come from.
    records : iterable of Unfoldable
        What to keep.
    retention_seconds : float
        How long.

    Returns
    -------
    int
        How many were not kept before.

    Raises
    ------
    CommitError
        Some could not be written; the batch must be delivered again.
    """
    items = [
        quarantine_item(
            table,
            shard,
            record.sequence,
            reason=record.reason,
            content={RECORD: pack(record.record)},
            retention_seconds=retention_seconds,
        )
        for record in records
    ]
    outcomes = list(table.pool.map(lambda item: insert(table, item), items))
    refused = [outcome for outcome in outcomes if outcome.status in ("failed", "rejected")]
    if refused:
        raise CommitError([RuntimeError(f"quarantine refused a record: {outcome.reason}") for outcome in refused])
    return outcomes.count(ACCEPTED)


def quarantine_item(
    table: Table, shard: str, place: str, *, reason: str, content: dict[str, Any], retention_seconds: float
) -> dict[str, Any]:
    """Make a quarantine item.

    Parameters
    ----------
    table : Table
        Its clock decides when the item expires.
    shard : str
        The shard its content comes from.
    place : str
        What tells it from others of the shard; starts with a padded sequence number.
    reason : str
        Why it could not be counted.
    content : dict
        The typed attribute that holds the record or the sum.
    retention_seconds : float
        How long to keep it.

    Returns
    -------
    dict
        Typed item.
    """
    return {
        PK: {"S": partition_of(shard)},
        SK: {"S": f"{shard}#{place}"},
        TYPE: {"S": QUARANTINE},
        TTL: {"N": str(int(table.clock() + retention_seconds))},
        STATE: {"S": WAITING},
        "reason": {"S": reason[:_MAX_REASON]},
        **content,
    }


def known_sequences(table: Table, shard: str) -> frozenset[str]:
    """Tell which records of a shard quarantine holds or has held.

    Parameters
    ----------
    table : Table
        Where from.
    shard : str
        Shard id.

    Returns
    -------
    frozenset of str
        Padded sequence numbers.
    """
    pages = table.client.get_paginator("query").paginate(
        TableName=table.name,
        KeyConditionExpression=f"{PK} = :pk AND begins_with({SK}, :shard)",
        ExpressionAttributeValues={":pk": {"S": partition_of(shard)}, ":shard": {"S": f"{shard}#"}},
        ProjectionExpression=SK,
        ConsistentRead=True,
    )
    places = [item[SK]["S"].removeprefix(f"{shard}#") for page in pages for item in page["Items"]]
    return frozenset(place for place in places if "#" not in place)


def listed(table: Table, *, released: bool) -> Iterator[Quarantined]:
    """List what is in quarantine.

    Parameters
    ----------
    table : Table
        Where from.
    released : bool
        Whether to include what was released already.

    Yields
    ------
    Quarantined
        By shard, in the order of the stream.
    """
    for number in range(PARTITIONS):
        pages = table.client.get_paginator("query").paginate(
            TableName=table.name,
            KeyConditionExpression=f"{PK} = :pk",
            ExpressionAttributeValues={":pk": {"S": partition(number)}},
            ConsistentRead=True,
        )
        for page in pages:
            for item in page["Items"]:
                record = _quarantined(item)
                if released or not record.released:
                    yield record


def redrive(table: Table, record: Quarantined) -> bool:
    """Release a record: the stream brings it to the aggregator once more.

    Parameters
    ----------
    table : Table
        Where it is.
    record : Quarantined
        What to release.

    Returns
    -------
    bool
        False if it was released before or has expired; nothing changes then.
    """
    try:
        table.client.update_item(
            TableName=table.name,
            Key={PK: {"S": record.key[0]}, SK: {"S": record.key[1]}},
            UpdateExpression="SET #state = :released",
            ConditionExpression="#state = :waiting",
            ExpressionAttributeNames={"#state": STATE},
            ExpressionAttributeValues={":released": {"S": RELEASED}, ":waiting": {"S": WAITING}},
        )
    except table.client.exceptions.ConditionalCheckFailedException:
        return False
    return True


def _quarantined(item: dict[str, Any]) -> Quarantined:
    shard, sequence = item[SK]["S"].split("#")[:2]
    content = unpack(item[SUM] if SUM in item else item[RECORD])
    key = item[PK]["S"], item[SK]["S"]
    return Quarantined(shard, sequence, item["reason"]["S"], content, item[STATE]["S"] == RELEASED, key)
