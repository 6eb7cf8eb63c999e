"""Events in a table of their own; from its stream, each new one increments the items of its hour and minute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from benchmarks.designs.base import EVENTS, TABLE, Design, inserted, view_item
from demo.examples.blog.traffic import View


class HourMinute(Design):
    name = "hour_minute_keys"
    title = "hour and minute keys"
    source = "references 001 and 003: Counting on dynamodb (2019)"
    streamed = EVENTS

    def create(self) -> None:
        self.database.create(EVENTS, "id")
        self.database.create(TABLE, "id")

    def take(self, view: View) -> None:
        """Put the event, whether it is there or not."""
        identity = f"{view.url} {view.time} {view.client}"
        self.client.put_item(TableName=EVENTS, Item={**view_item(view), "id": {"S": identity}})

    def aggregate(self, records: Sequence[Mapping[str, Any]]) -> None:
        for change in inserted(records):
            image = change["NewImage"]
            seconds = int(datetime.fromisoformat(image["time"]["S"]).timestamp())
            for key, update in hour_and_minute(image["url"]["S"], seconds):
                self.client.update_item(TableName=TABLE, Key={"id": {"S": key}}, **update, ReturnValues="UPDATED_NEW")

    def counts(self) -> dict[str, int]:
        found = Counter[str]()
        for item in self.database.items(TABLE):
            url, unit, _ = item["id"]["S"].rsplit("_", 2)
            if unit == "hour":
                found[url] += int(item["count"]["N"])
        return found


def hour_and_minute(name: str, seconds: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The keys of both items, each with the part of an update that adds one, kept for 25 hours."""
    update = {
        "UpdateExpression": "SET #c = if_not_exists(#c, :zero) + :one, #t = if_not_exists(#t, :ttl)",
        "ExpressionAttributeNames": {"#c": "count", "#t": "ttl"},
        "ExpressionAttributeValues": {":zero": {"N": "0"}, ":one": {"N": "1"}, ":ttl": {"N": str(seconds + 90_000)}},
    }
    for unit, length in (("hour", 3600), ("minute", 60)):
        yield f"{name}_{unit}_{seconds // length}", update
