"""A checkpoint of the shard and all its counters in one transaction: the alternative this project decided against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.designs.base import TABLE, increment, inserted, views_by_url
from benchmarks.designs.coalescing import Coalescing

_CHECKPOINT = {"pk": {"S": "CHECKPOINT"}, "sk": {"S": "shard-1"}}
_ITEMS_PER_TRANSACTION = 100


class Checkpoint(Coalescing):
    """Exact, at two units per item; a batch that touches more than 99 pages takes several transactions, in order."""

    name = "checkpoint_transaction"
    title = "checkpoint in a transaction"
    source = "the alternative in this project's design; AWS's event-driven lab has a variant that forgets"

    def aggregate(self, records: Sequence[Mapping[str, Any]]) -> None:
        checkpoint = self.client.get_item(TableName=TABLE, Key=_CHECKPOINT, ConsistentRead=True)
        reached = checkpoint["Item"]["last"]["S"] if "Item" in checkpoint else ""
        for part in _parts([change for change in inserted(records) if _sequence(change) > reached]):
            first, last = _sequence(part[0]), _sequence(part[-1])
            move = {
                "TableName": TABLE,
                "Key": _CHECKPOINT,
                "UpdateExpression": "SET #last = :last",
                "ConditionExpression": "attribute_not_exists(#last) OR #last < :first",
                "ExpressionAttributeNames": {"#last": "last"},
                "ExpressionAttributeValues": {":first": {"S": first}, ":last": {"S": last}},
            }
            updates = [{"Update": increment(url, number)} for url, number in views_by_url(part).items()]
            self.client.transact_write_items(TransactItems=[{"Update": move}, *updates])


def _sequence(change: Mapping[str, Any]) -> str:
    # Padded: order of texts is then order of numbers.
    return str(change["SequenceNumber"]).zfill(40)


def _parts(changes: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Cut a batch into pieces that fit a transaction."""
    part: list[Mapping[str, Any]] = []
    urls: set[str] = set()
    for change in changes:
        urls.add(change["NewImage"]["url"]["S"])
        if len(urls) == _ITEMS_PER_TRANSACTION:
            yield part
            part, urls = [], {change["NewImage"]["url"]["S"]}
        part.append(change)
    if part:
        yield part
