"""What a deployed app does: the lines that its functions log, and the counts of a table that change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from botocore.exceptions import ClientError

from counters_lambda.http_api.resources import answer
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations.composites import MEMBERS, group_fields
from dynamodb_counters._fold.layouts import ItemLayout, group_of_item
from dynamodb_counters._items.schema import TYPE
from dynamodb_counters._reads.question import Question
from dynamodb_counters._registry import read_registry

FRAME: Final = ("INIT_START ", "START RequestId: ", "END RequestId: ", "REPORT RequestId: ")
"""How lines begin that every invocation logs."""

AGGREGATOR_HANDLER: Final = "counters_lambda.handlers.aggregator.handler"


class Logs:
    """Lines of functions that have come since the last look, but for metrics and those of every invocation."""

    def __init__(self, client: Any) -> None:
        self._client, self._seen = client, Counter[str]()

    def new(self, function: Mapping[str, Any]) -> list[str]:
        """Return those of a function, as Lambda describes it."""
        name = function["FunctionName"]
        group = function.get("LoggingConfig", {}).get("LogGroup", f"/aws/lambda/{name}")
        try:
            pages = list(self._client.get_paginator("filter_log_events").paginate(logGroupName=group))
        except ClientError:  # Nothing has been logged there.
            return []
        messages = [event["message"] for page in pages for event in page["events"]]
        first, self._seen[group] = self._seen[group], len(messages)
        return [f"{name}  {line}" for message in messages[first:] for line in shown(message).splitlines()]


def shown(message: str) -> str:
    """A message as one reads it; empty if it is none for people."""
    text = message.rstrip()
    with suppress(ValueError, AttributeError):  # A text that is no JSON object is shown as it is.
        document = json.loads(text)
        level, said = document.get("level", ""), document.get("message", document.get("errorMessage", text))
        text = "" if "_aws" in document else f"{level} {said}".strip()
    return "" if text.startswith(FRAME) else text


class ChangedCounts:
    """Reads the counts of a table that have changed since the last look, as the records of its stream say."""

    def __init__(self, counters: Counters, streams: Any) -> None:
        self._counters, table = counters, counters._table
        arn = table.client.describe_table(TableName=table.name)["Table"]["LatestStreamArn"]
        # The emulator has one shard per stream.
        [shard] = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        place = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        self._streams, self._next = streams, streams.get_shard_iterator(**place)["ShardIterator"]

    def new(self) -> Iterator[dict[str, Any]]:
        """Answer as `counters get` does: what counts by time, over the last 24 hours."""
        table, questions = self._counters._table, dict[Any, Question]()
        items = list(self._images())
        registered = read_registry(table).declarations if items else ()
        declared = {each.name: each for each in registered if not each.name.endswith(MEMBERS)}
        for item in items:
            if (each := declared.get(item.get(TYPE, {}).get("S", ""))) is None:
                continue
            for image in ItemLayout(each).images(item):
                if (group := group_of_item(each, image)) is not None:
                    texts, now = dict(zip(each.fields, group, strict=False)), table.clock()
                    values = {name: texts[name] for name in group_fields(each)}
                    question = Question(now=now, declared=each, values=values, consistent=True)
                    questions[each.name, *values.values()] = question
        return (answer(self._counters, question) for question in questions.values())

    def _images(self) -> Iterator[Mapping[str, Any]]:
        records = None
        while records != []:
            page = self._streams.get_records(ShardIterator=self._next)
            records, self._next = page["Records"], page["NextShardIterator"]
            yield from (record["dynamodb"].get("NewImage", {}) for record in records)
