"""What every compared design is asked to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from demo.examples.blog.traffic import View

TABLE = "counters"
EVENTS = "events"


class Database(Protocol):
    """Tables of an engine, in memory or DynamoDB Local."""

    client: Any

    def create(self, name: str, *keys: str) -> None:
        """Create a table with the given key attributes."""

    def items(self, table: str) -> Iterable[Mapping[str, Any]]:
        """Give all items of a table, free of charge."""


class Design(ABC):
    """A way to count views per page.

    Parameters
    ----------
    database : Database
        An empty engine.

    Attributes
    ----------
    name, title, source : str
        Key in the report, what to call it, where it is described.
    reads_stream : bool
        Whether the table's stream does the counting.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    reads_stream: ClassVar[bool] = False

    def __init__(self, database: Database) -> None:
        self.database = database
        self.client = database.client
        self.create()

    def create(self) -> None:
        """Create the tables."""
        self.database.create(TABLE, "pk", "sk")

    @abstractmethod
    def accept(self, views: Sequence[View]) -> None:
        """Take the views of one delivery: of a queue's batch, or of whoever sends them."""

    def aggregate(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Count a batch of stream records."""
        raise NotImplementedError

    def counts(self) -> dict[str, int]:
        """Read the count of every page, free of charge."""
        return {
            item["pk"]["S"].removeprefix("URL#"): int(item["views"]["N"])
            for item in self.database.items(TABLE)
            if item["sk"]["S"] == "STATISTICS" and "views" in item
        }


def statistics_key(url: str) -> dict[str, Any]:
    """Give the key of a page's counter."""
    return {"pk": {"S": f"URL#{url}"}, "sk": {"S": "STATISTICS"}}


def view_item(view: View) -> dict[str, Any]:
    """Give the item that remembers a view, as the reference lays it out."""
    return {
        "pk": {"S": f"URL#{view.url}"},
        "sk": {"S": f"T#{view.time}#CID#{view.client}"},
        "url": {"S": view.url},
        "time": {"S": view.time},
        "clientId": {"S": view.client},
    }


def increment(number: int = 1) -> dict[str, Any]:
    """Give the part of an update that adds to a counter, which need not be there."""
    return {
        "UpdateExpression": "SET #views = if_not_exists(#views, :init) + :inc",
        "ExpressionAttributeNames": {"#views": "views"},
        "ExpressionAttributeValues": {":init": {"N": "0"}, ":inc": {"N": str(number)}},
    }


def inserted(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Pick the records of new events."""
    return [
        record for record in records if record["eventName"] == "INSERT" and "clientId" in record["dynamodb"]["NewImage"]
    ]
