"""A checkpoint of the shard and all its counters in one transaction: the alternative this project decided against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.designs.base import TABLE, Design, increment, inserted, statistics_key
from benchmarks.designs.coalescing import accept_once
from demo.examples.blog.traffic import View

_CHECKPOINT = {"pk": {"S": "CHECKPOINT"}, "sk": {"S": "shard-1"}}
_ITEMS_PER_TRANSACTION = 100


class Checkpoint(Design):
    """Exact, at two units per item; a batch that touches more than 99 pages takes several transactions, in order."""

    name = "checkpoint_transaction"
    title = "checkpoint in a transaction"
    source = "the alternative in this project's design; AWS's event-driven lab has a variant that forgets"
    streamed = TABLE

    def accept(self, views: Sequence[View]) -> None:
        accept_once(self.client, views)

    def aggregate(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Count what comes after the checkpoint."""
        behind = inserted(records)
        reached = self._reached()
        for part in _parts([record for record in behind if _sequence(record) > reached]):
            first, last = _sequence(part[0]), _sequence(part[-1])
            move = {
                "TableName": TABLE,
                "Key": _CHECKPOINT,
                "UpdateExpression": "SET #last = :last",
                "ConditionExpression": "attribute_not_exists(#last) OR #last < :first",
                "ExpressionAttributeNames": {"#last": "last"},
                "ExpressionAttributeValues": {":first": {"S": first}, ":last": {"S": last}},
            }
            counts = Counter(record["dynamodb"]["NewImage"]["url"]["S"] for record in part)
            updates = [
                {"Update": {"TableName": TABLE, "Key": statistics_key(url), **increment(number)}}
                for url, number in counts.items()
            ]
            self.client.transact_write_items(TransactItems=[{"Update": move}, *updates])

    def _reached(self) -> str:
        found = self.client.get_item(TableName=TABLE, Key=_CHECKPOINT, ConsistentRead=True)
        return str(found["Item"]["last"]["S"]) if "Item" in found else ""


def _sequence(record: Mapping[str, Any]) -> str:
    # Padded: order of texts is then order of numbers.
    return str(record["dynamodb"]["SequenceNumber"]).zfill(40)


def _parts(records: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Cut a batch into pieces that fit a transaction."""
    part: list[Mapping[str, Any]] = []
    urls: set[str] = set()
    for record in records:
        url = record["dynamodb"]["NewImage"]["url"]["S"]
        if url not in urls and len(urls) == _ITEMS_PER_TRANSACTION - 1:
            yield part
            part, urls = [], set()
        part.append(record)
        urls.add(url)
    if part:
        yield part
