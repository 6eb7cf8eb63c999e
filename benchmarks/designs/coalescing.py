"""Adds up a batch in the function and writes each counter once, without looking back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.designs.base import TABLE, Design, increment, inserted, statistics_key, view_item
from demo.examples.blog.traffic import View


class Coalescing(Design):
    """Events inserted once; one plain UpdateItem per page and batch."""

    name = "coalescing"
    title = "coalescing stream aggregator"
    source = "common practice, e.g. https://github.com/zeroae/zae-limiter (aggregator)"
    streamed = TABLE

    def accept(self, views: Sequence[View]) -> None:
        accept_once(self.client, views)

    def aggregate(self, records: Sequence[Mapping[str, Any]]) -> None:
        for url, number in Counter(record["dynamodb"]["NewImage"]["url"]["S"] for record in inserted(records)).items():
            self.client.update_item(TableName=TABLE, Key=statistics_key(url), **increment(number))


def accept_once(client: Any, views: Sequence[View]) -> None:
    """Insert events by one conditional PutItem each."""
    for view in views:
        try:
            client.put_item(TableName=TABLE, Item=view_item(view), ConditionExpression="attribute_not_exists(pk)")
        except client.exceptions.ConditionalCheckFailedException:
            continue
