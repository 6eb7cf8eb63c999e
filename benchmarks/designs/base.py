"""Interface of every compared design."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from benchmarks.databases import TABLE, Database
from demo.blog.traffic import View

QUEUE_BATCH = 25
"""Events that are accepted at once."""


class Design:
    """A way to count views per page, on an empty database.

    `name` is its key in the report, `source` where it is described, `streamed` the table whose stream does the
    counting, if any. It accepts so many events per call, with about so many requests, and counts so many records per
    batch of the stream, if not as many as all.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    streamed: ClassVar[str | None] = None
    events_per_call: ClassVar[int] = QUEUE_BATCH
    records_per_batch: ClassVar[int | None] = None
    requests_per_call: ClassVar[int] = 2 * QUEUE_BATCH

    def __init__(self, database: Database) -> None:
        self.database = database
        self.client = database.client
        self.create()

    def restart(self) -> None:
        """Forget what a process knows, which has died."""

    def create(self) -> None:
        self.database.create(TABLE, "pk", "sk")

    def insert(self, view: View) -> bool:
        """Insert the event unless it is there already; whether it was new."""
        try:
            self.client.put_item(TableName=TABLE, Item=view_item(view), ConditionExpression="attribute_not_exists(pk)")
        except self.client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def accept(self, views: Sequence[View]) -> None:
        for view in views:
            self.take(view)

    def take(self, view: View) -> None:
        raise NotImplementedError

    def aggregate(self, records: Sequence[Mapping[str, Any]]) -> None:
        raise NotImplementedError

    def counts(self) -> dict[str, int]:
        """Return the count of every page, read free of charge."""
        return {
            item["pk"]["S"].removeprefix("URL#"): int(item["views"]["N"])
            for item in self.database.items(TABLE)
            if item["sk"]["S"] == "STATISTICS" and "views" in item
        }


def statistics_key(url: str) -> dict[str, Any]:
    return {"pk": {"S": f"URL#{url}"}, "sk": {"S": "STATISTICS"}}


def view_item(view: View) -> dict[str, Any]:
    """Return the item that remembers a view, as the reference lays it out."""
    return {
        "pk": {"S": f"URL#{view.url}"},
        "sk": {"S": f"T#{view.time}#CID#{view.client}"},
        **{name: {"S": value} for name, value in view.as_event().items()},
    }


def increment(url: str, number: int = 1) -> dict[str, Any]:
    """Return an update that adds to a page's counter, which need not exist."""
    return {
        "TableName": TABLE,
        "Key": statistics_key(url),
        "UpdateExpression": "SET #views = if_not_exists(#views, :init) + :inc",
        "ExpressionAttributeNames": {"#views": "views"},
        "ExpressionAttributeValues": {":init": {"N": "0"}, ":inc": {"N": str(number)}},
    }


def inserted(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    changes = [record["dynamodb"] for record in records if record["eventName"] == "INSERT"]
    return [change for change in changes if "clientId" in change["NewImage"]]


def views_by_url(changes: Iterable[Mapping[str, Any]]) -> Counter[str]:
    return Counter(change["NewImage"]["url"]["S"] for change in changes)
