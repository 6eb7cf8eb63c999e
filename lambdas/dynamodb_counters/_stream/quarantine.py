"""Quarantine as the aggregator uses it: keep what cannot be counted, know what is kept, stop when taken over.

A later deployment may be able to fold what this one cannot. To keep a record from being counted by the one and redriven
from the other's quarantine, a deployment that first meets a shard writes the shard's fencing token, then reads what is
quarantined. It quarantines nothing more once another deployment has replaced the token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from dynamodb_counters._fold.deltas import Unfoldable
from dynamodb_counters._items.table_schema import PK, QUARANTINE, SK, TTL, TYPE
from dynamodb_counters._stream.quarantine_items import (
    MAX_REASON,
    RECORD,
    pack,
    partition_of,
    quarantine_item,
    token_key,
)
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CommitError

_DEPLOYMENT: Final = "deployment"
_TRIES: Final = 10

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
_MAX_CHUNK: Final = 99
_MAX_CHUNK_BYTES: Final = 3_000_000


class Quarantine:
    """The quarantine of one deployment, which keeps entries for `retention_seconds`."""

    def __init__(self, table: Table, deployment: str, retention_seconds: float) -> None:
        self._table = table
        self._deployment = deployment
        self._retention_seconds = retention_seconds
        self._quarantined: dict[str, frozenset[str]] = {}

    def entry_ids(self, shard: str) -> frozenset[str]:
        """Ids of all entries of a shard, redriven ones too; takes the shard over when first called."""
        if shard not in self._quarantined:
            self._table.client.put_item(
                TableName=self._table.name,
                Item={
                    **token_key(shard),
                    TYPE: {"S": QUARANTINE},
                    _DEPLOYMENT: {"S": self._deployment},
                    TTL: {"N": str(self._expires_at())},
                },
            )
            self._quarantined[shard] = self._read_entry_ids(shard)
        return self._quarantined[shard]

    def keep(self, shard: str, images: Sequence[Unfoldable]) -> int:
        """Keep images that are not kept yet and return how many; `CommitError` means: deliver the batch again."""
        items = [self.item(shard, image.entry_id, image.reason, {RECORD: pack(image.record)}) for image in images]
        return sum(self._put(shard, chunk) for chunk in _chunks(items))

    def item(self, shard: str, entry_id: str, reason: str, content: dict[str, Any]) -> dict[str, Any]:
        return quarantine_item(shard, entry_id, reason, content, self._expires_at())

    def _put(self, shard: str, items: list[dict[str, Any]]) -> int:
        holds_token = {
            "TableName": self._table.name,
            "Key": token_key(shard),
            "ConditionExpression": f"{_DEPLOYMENT} = :deployment",
            "ExpressionAttributeValues": {":deployment": {"S": self._deployment}},
        }
        codes: list[str] = []
        for _ in self._table.tries(_TRIES):
            puts = [
                {"TableName": self._table.name, "Item": item, "ConditionExpression": f"attribute_not_exists({PK})"}
                for item in items
            ]
            writes: Any = [{"ConditionCheck": holds_token}, *({"Put": put} for put in puts)]
            try:
                if items:
                    self._table.client.transact_write_items(TransactItems=writes)
            except ClientError as error:
                if error.response["Error"]["Code"] != "TransactionCanceledException":
                    raise CommitError([error]) from error
                codes = [reason.get("Code", "None") for reason in error.response["CancellationReasons"]]
                if codes[0] == "ConditionalCheckFailed":
                    del self._quarantined[shard]
                    raise CommitError([RuntimeError("another deployment has taken over the shard")]) from None
                items = [
                    item
                    for item, code in zip(items, codes[1:], strict=True)
                    if code != "ConditionalCheckFailed"  # Kept by an earlier delivery.
                ]
            else:
                return len(items)
        raise CommitError([RuntimeError(f"quarantine was refused {_TRIES} times, last because of {', '.join(codes)}")])

    def _read_entry_ids(self, shard: str) -> frozenset[str]:
        pages = self._table.client.get_paginator("query").paginate(
            TableName=self._table.name,
            KeyConditionExpression=f"{PK} = :pk AND begins_with({SK}, :shard)",
            ExpressionAttributeValues={":pk": {"S": partition_of(shard)}, ":shard": {"S": f"{shard}#"}},
            ProjectionExpression=SK,
            ConsistentRead=True,
        )
        return frozenset(item[SK]["S"].removeprefix(f"{shard}#") for page in pages for item in page["Items"])

    def _expires_at(self) -> int:
        return int(self._table.clock() + self._retention_seconds)


def _chunks(items: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Cut items to fit a transaction: 99 beside the token's check, and less than 4 MB in all."""
    chunk: list[dict[str, Any]] = []
    room = _MAX_CHUNK_BYTES
    for item in items:
        size = len(next(iter(item.get(RECORD, {"S": ""}).values()))) + MAX_REASON
        if chunk and (len(chunk) == _MAX_CHUNK or size > room):
            yield chunk
            chunk, room = [], _MAX_CHUNK_BYTES
        chunk.append(item)
        room -= size
    if chunk:
        yield chunk
