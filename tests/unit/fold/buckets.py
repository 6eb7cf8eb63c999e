"""A table of window buckets in memory: written by the fold, read by `Counters`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, localcontext
from typing import Any, cast

from dynamodb_counters import Counters, Event, Window
from dynamodb_counters._fold.deltas import Folded
from dynamodb_counters._fold.fold import fold as fold_changes
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters._items.decimals import EXACT

JOB = Event("job", pk="CUSTOMER#{customer}", sk="JOB#{id}")
Number = int | Decimal


class Buckets:
    """Items by key, and just enough of a client to query them.

    Parameters
    ----------
    now : float, optional
        What the reader's clock shows.
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self.items: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
        self.queries: list[dict[str, Any]] = []
        self._sorted: list[tuple[str, str]] = []

    @property
    def counters(self) -> Counters:
        """What reads them."""
        return Counters("table", client=cast("Any", self), clock=lambda: self.now)

    def write(self, folded: Folded) -> None:
        """Add what a batch comes to."""
        with localcontext(EXACT):
            self._add(folded)
        self._sorted = sorted(self.items)

    def _add(self, folded: Folded) -> None:
        for delta in folded.deltas:
            key = delta.layout.key(delta.group, "shard")
            item = self.items.setdefault((key["pk"], key["sk"]), {name: {"S": text} for name, text in key.items()})
            for name, number in delta.measures.items():
                item[name] = {"N": str(Decimal(item.get(name, {"N": "0"})["N"]) + number)}
            expires_at = delta.layout.expires_at(delta.group)
            if expires_at is not None:
                item["ttl"] = {"N": str(expires_at)}

    def expire(self, now: float) -> None:
        """Delete what TTL lets be deleted."""
        self.items = {key: item for key, item in self.items.items() if int(item.get("ttl", {"N": "9" * 12})["N"]) > now}
        self._sorted = sorted(self.items)

    def get_paginator(self, operation: str) -> Buckets:
        """Give what pages through a Query."""
        assert operation == "query"
        return self

    def paginate(self, **query: Any) -> Iterator[dict[str, Any]]:
        """Answer a Query over a range of sort keys."""
        assert query["KeyConditionExpression"] == "pk = :pk AND sk BETWEEN :first AND :last"
        self.queries.append(query)
        values = query["ExpressionAttributeValues"]
        pk = values[":pk"]["S"]
        first = bisect_left(self._sorted, (pk, values[":first"]["S"]))
        last = bisect_right(self._sorted, (pk, values[":last"]["S"]))
        yield {"Items": [self.items[key] for key in self._sorted[first:last]]}


def fold(window: Window, happened: Iterable[tuple[int, Number]], created: float | None = None) -> Folded:
    """Fold one new event of customer ``c`` for each moment and number."""
    return fold_changes(
        Plan((window,)),
        changes_of(
            job(place, created, at={"N": str(second)}, amount={"N": str(number)})
            for place, (second, number) in enumerate(happened)
        ),
    )


def job(place: int, created: float | None, **attributes: Mapping[str, str]) -> dict[str, Any]:
    """Make the stream record of a new event."""
    image = {"_type": {"S": "job"}, "customer": {"S": "c"}, **attributes}
    change: dict[str, Any] = {"SequenceNumber": str(10**20 + place), "NewImage": image}
    if created is not None:
        change["ApproximateCreationDateTime"] = created
    return {"eventName": "INSERT", "dynamodb": change}
