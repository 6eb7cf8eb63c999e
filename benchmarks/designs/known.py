"""The known designs, each rewritten faithfully after its source."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Final

from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyAlreadyInProgressError

from benchmarks.databases import TABLE
from benchmarks.designs.base import Design, increment, inserted, statistics_key, view_item, views_by_url
from demo.blog.traffic import View

_EVENTS: Final = "events"
_MARKERS: Final = "idempotency"
_CHECKPOINT: Final = {"pk": {"S": "CHECKPOINT"}, "sk": {"S": "shard-1"}}
_ITEMS_PER_TRANSACTION: Final = 100


class Naive(Design):
    """One UpdateItem per event adds one to the counter, whatever has happened before."""

    name = "naive_increment"
    title = "naive increment"
    source = "reference 000, 'less naive' counter: https://aws-blog.de (M. Borgmeier, 2022)"

    def take(self, view: View) -> None:
        self.client.update_item(**increment(view.url))


class TransactionalMarker(Design):
    """One TransactWriteItems of marker and counter per event; an existing marker cancels both."""

    name = "transaction_marker"
    title = "transaction: marker + counter"
    source = "reference 000, accurate counter: https://aws-blog.de (M. Borgmeier, 2022)"

    def take(self, view: View) -> None:
        marker = {
            "TableName": TABLE,
            "Item": view_item(view),
            "ConditionExpression": "attribute_not_exists(pk) AND attribute_not_exists(sk)",
        }
        with suppress(self.client.exceptions.TransactionCanceledException):
            self.client.transact_write_items(TransactItems=[{"Put": marker}, {"Update": increment(view.url)}])


class PutThenIncrement(Design):
    """A conditional PutItem, then an UpdateItem if the view was new: a death between the two loses the view."""

    name = "put_then_increment"
    title = "page view put, then increment"
    source = "reference 002: DynamoDB in examples 2.1, page and page view (2015)"

    def take(self, view: View) -> None:
        if self.insert(view):
            self.client.update_item(
                TableName=TABLE,
                Key=statistics_key(view.url),
                UpdateExpression="ADD #views :n",
                ExpressionAttributeNames={"#views": "views"},
                ExpressionAttributeValues={":n": {"N": "1"}},
                ReturnValues="ALL_NEW",
            )


class Powertools(Design):
    """AWS Lambda Powertools' idempotency around an increment, not atomic with it; its own code, not ours."""

    name = "powertools_idempotency"
    title = "Powertools idempotency + ADD"
    source = "https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/"

    def create(self) -> None:
        super().create()
        self.database.create(_MARKERS, "id")
        self._count = idempotent_counter(self.client)

    def take(self, view: View) -> None:
        for _ in range(100):
            try:
                self._count(view=view._asdict())
                break
            except IdempotencyAlreadyInProgressError:
                # An invocation died: its lock ends with the time that invocation had left. The queue tries later.
                time.sleep(0.002)


def idempotent_counter(client: Any) -> Callable[..., Any]:
    """Return the increment, guarded as Powertools' documentation shows for records of a batch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store = DynamoDBPersistenceLayer(table_name=_MARKERS, boto3_client=client)
        config = IdempotencyConfig(expires_after_seconds=7 * 86_400)
        # A millisecond left to run: locks of invocations that died end before their events come again.
        config.register_lambda_context(SimpleNamespace(get_remaining_time_in_millis=lambda: 1))  # type: ignore[arg-type]

        @idempotent_function(data_keyword_argument="view", persistence_store=store, config=config)  # type: ignore[untyped-decorator]
        def count(view: dict[str, Any]) -> None:
            client.update_item(**increment(view["url"]))

    return count  # type: ignore[no-any-return]


class HourMinute(Design):
    """Events in a table of their own; from its stream, each new one increments the items of its hour and minute."""

    name = "hour_minute_keys"
    title = "hour and minute keys"
    source = "references 001 and 003: Counting on dynamodb (2019)"
    streamed = _EVENTS

    def create(self) -> None:
        self.database.create(_EVENTS, "id")
        self.database.create(TABLE, "id")

    def take(self, view: View) -> None:
        """Put the event, whether it is there or not."""
        identity = f"{view.url} {view.time} {view.client}"
        self.client.put_item(TableName=_EVENTS, Item={**view_item(view), "id": {"S": identity}})

    def aggregate(self, records: Sequence[Mapping[str, Any]]) -> None:
        for change in inserted(records):
            image = change["NewImage"]
            seconds = int(datetime.fromisoformat(image["time"]["S"]).timestamp())
            for key, update in hour_and_minute(image["url"]["S"], seconds):
                self.client.update_item(TableName=TABLE, Key={"id": {"S": key}}, **update, ReturnValues="UPDATED_NEW")

    def counts(self) -> dict[str, int]:
        counter = Counter[str]()
        for item in self.database.items(TABLE):
            url, unit, _ = item["id"]["S"].rsplit("_", 2)
            if unit == "hour":
                counter[url] += int(item["count"]["N"])
        return counter


def hour_and_minute(name: str, seconds: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the keys of both items, each with the part of an update that adds one, kept for 25 hours."""
    update = {
        "UpdateExpression": "SET #c = if_not_exists(#c, :zero) + :one, #t = if_not_exists(#t, :ttl)",
        "ExpressionAttributeNames": {"#c": "count", "#t": "ttl"},
        "ExpressionAttributeValues": {":zero": {"N": "0"}, ":one": {"N": "1"}, ":ttl": {"N": str(seconds + 90_000)}},
    }
    for unit, length in (("hour", 3600), ("minute", 60)):
        yield f"{name}_{unit}_{seconds // length}", update


class Coalescing(Design):
    """Inserts events once, adds up a batch and writes each counter by one plain UpdateItem, without looking back."""

    name = "coalescing"
    title = "coalescing stream aggregator"
    source = "common practice, e.g. https://github.com/zeroae/zae-limiter (aggregator)"
    streamed = TABLE

    def take(self, view: View) -> None:
        self.insert(view)

    def aggregate(self, records: Sequence[Mapping[str, Any]]) -> None:
        for url, number in views_by_url(inserted(records)).items():
            self.client.update_item(**increment(url, number))


class Checkpoint(Coalescing):
    """A checkpoint of the shard and all its counters in one transaction, which this project decided against.

    Exact, at two units per item; a batch that touches more than 99 pages takes several transactions, in order.
    """

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
