"""Quarantine in the table: keep records that cannot be folded, list them, release them to be counted after all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from dynamodb_counters._fold.deltas import Unfoldable
from dynamodb_counters._fold.quarantine_content import (
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
from dynamodb_counters._items.table_schema import PK, QUARANTINE, SK, TTL, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CommitError

_MAX_REASON: Final = 1000
_DEPLOYMENT: Final = "deployment"
_TRIES: Final = 10

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
_MAX_CHUNK: Final = 99
_MAX_CHUNK_BYTES: Final = 3_000_000


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Something in quarantine.

    Parameters
    ----------
    shard : str
        The stream shard it came from.
    sequence : str
        Its padded sequence number there.
    reason : str
        Why it could not be counted.
    content : dict
        The stream record, with the one image that could not be folded; or, where an item could not take a sum,
        declaration, group and numbers.
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


class Quarantine:
    """The quarantine as one deployment of the aggregator uses it.

    What a deployment cannot fold, a later one may be able to. So that nothing is both counted by the one and redriven
    from the other's quarantine, a deployment that meets a shard first moves the shard's fence, then reads what is in
    quarantine; and it puts nothing there any more once another one has moved the fence.

    Parameters
    ----------
    table : Table
        Where it is.
    deployment : str
        What tells this deployment from others that fold differently.
    retention_seconds : float
        How long to keep what comes in.
    """

    def __init__(self, table: Table, deployment: str, retention_seconds: float) -> None:
        self._table = table
        self._deployment = deployment
        self._retention_seconds = retention_seconds
        self._known: dict[str, frozenset[str]] = {}

    def known(self, shard: str) -> frozenset[str]:
        """Tell what of a shard is or was in quarantine; moves the fence when asked for the first time.

        Parameters
        ----------
        shard : str
            Shard id.

        Returns
        -------
        frozenset of str
            Places of images.
        """
        if shard not in self._known:
            self._table.client.put_item(
                TableName=self._table.name,
                Item={
                    **_fence_key(shard),
                    TYPE: {"S": QUARANTINE},
                    _DEPLOYMENT: {"S": self._deployment},
                    TTL: {"N": str(int(self._table.clock() + self._retention_seconds))},
                },
            )
            self._known[shard] = self._places(shard)
        return self._known[shard]

    def keep(self, shard: str, images: Sequence[Unfoldable]) -> int:
        """Keep images; one that is kept already stays as it is.

        Parameters
        ----------
        shard : str
            The shard they come from.
        images : sequence of Unfoldable
            What to keep.

        Returns
        -------
        int
            How many were not kept before.

        Raises
        ------
        CommitError
            Some could not be written, or another deployment has taken over; the batch must be delivered again.
        """
        items = [self.item(shard, image.place, image.reason, {RECORD: pack(image.record)}) for image in images]
        return sum(self._put(shard, chunk) for chunk in _chunks(items))

    def item(self, shard: str, place: str, reason: str, content: dict[str, Any]) -> dict[str, Any]:
        """Make a quarantine item.

        Parameters
        ----------
        shard : str
            The shard its content comes from.
        place : str
            What tells it from others of the shard; starts with a padded sequence number.
        reason : str
            Why it could not be counted.
        content : dict
            The typed attribute that holds the record or the sum.

        Returns
        -------
        dict
            Typed item.
        """
        return {
            PK: {"S": partition_of(shard)},
            SK: {"S": f"{shard}#{place}"},
            TYPE: {"S": QUARANTINE},
            TTL: {"N": str(int(self._table.clock() + self._retention_seconds))},
            STATE: {"S": WAITING},
            "reason": {"S": reason[:_MAX_REASON]},
            **content,
        }

    def _put(self, shard: str, items: list[dict[str, Any]]) -> int:
        fence = {
            "TableName": self._table.name,
            "Key": _fence_key(shard),
            "ConditionExpression": f"{_DEPLOYMENT} = :deployment",
            "ExpressionAttributeValues": {":deployment": {"S": self._deployment}},
        }
        codes: list[str] = []
        for _ in self._table.tries(_TRIES):
            puts = [
                {"TableName": self._table.name, "Item": item, "ConditionExpression": f"attribute_not_exists({PK})"}
                for item in items
            ]
            writes: Any = [{"ConditionCheck": fence}, *({"Put": put} for put in puts)]
            try:
                if items:
                    self._table.client.transact_write_items(TransactItems=writes)
            except ClientError as error:
                if error.response["Error"]["Code"] != "TransactionCanceledException":
                    raise CommitError([error]) from error
                codes = [reason.get("Code", "None") for reason in error.response["CancellationReasons"]]
                if codes[0] == "ConditionalCheckFailed":
                    del self._known[shard]
                    raise CommitError([RuntimeError("another deployment has taken over the shard")]) from None
                items = [
                    item
                    for item, code in zip(items, codes[1:], strict=True)
                    if code != "ConditionalCheckFailed"  # Kept by an earlier delivery.
                ]
            else:
                return len(items)
        raise CommitError([RuntimeError(f"quarantine was refused {_TRIES} times, at last for {', '.join(codes)}")])

    def _places(self, shard: str) -> frozenset[str]:
        pages = self._table.client.get_paginator("query").paginate(
            TableName=self._table.name,
            KeyConditionExpression=f"{PK} = :pk AND begins_with({SK}, :shard)",
            ExpressionAttributeValues={":pk": {"S": partition_of(shard)}, ":shard": {"S": f"{shard}#"}},
            ProjectionExpression=SK,
            ConsistentRead=True,
        )
        return frozenset(item[SK]["S"].removeprefix(f"{shard}#") for page in pages for item in page["Items"])


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
                if STATE in item:
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


def _fence_key(shard: str) -> dict[str, dict[str, str]]:
    return {PK: {"S": partition_of(shard)}, SK: {"S": f"FENCE#{shard}"}}


def _chunks(items: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Cut items into what one transaction takes: 99 beside the fence, and less than 4 MB in all."""
    chunk: list[dict[str, Any]] = []
    room = _MAX_CHUNK_BYTES
    for item in items:
        size = len(next(iter(item.get(RECORD, {"S": ""}).values()))) + _MAX_REASON
        if chunk and (len(chunk) == _MAX_CHUNK or size > room):
            yield chunk
            chunk, room = [], _MAX_CHUNK_BYTES
        chunk.append(item)
        room -= size
    if chunk:
        yield chunk


def _quarantined(item: dict[str, Any]) -> Quarantined:
    shard, sequence = item[SK]["S"].split("#")[:2]
    content = unpack(item[SUM] if SUM in item else item[RECORD])
    key = item[PK]["S"], item[SK]["S"]
    return Quarantined(shard, sequence, item["reason"]["S"], content, item[STATE]["S"] == RELEASED, key)
