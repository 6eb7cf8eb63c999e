"""A queue, its consumer, and a table that fails on command."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, cast

import pytest

from dynamodb_counters import Aggregate, Event
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._table import Table
from dynamodb_counters.handlers import ingest_queue as consumer
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable
from simulation.queue.sqs import SQS, Message, Queue

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7))


class World:
    """A queue whose messages a consumer handles, and a table in memory that fails on command."""

    def __init__(self, event: Event = VIEW, *aggregates: Aggregate) -> None:
        self.clock = VirtualClock()
        self.dead = Queue(self.clock)
        self.queue = Queue(self.clock, dead_letters=self.dead)
        self.table = MemoryTable(self.clock)
        self.refuse_sending = False
        # What feeds its own queue is a loop, which Lambda ends.
        self.sqs = SQS({"d": self.dead}, refuses=lambda: self.refuse_sending)
        self.reached = Table(
            self.table.name,
            cast("Any", self.table),
            clock=self.clock,
            sleep=self.clock.advance,
            jitter=random.Random(0).random,
        )
        self.consumer = consumer.Consumer(self.reached, event, "d", Plan(aggregates))
        self.consumer.__dict__["sqs"] = self.sqs

    def deliver(self, time_left: float = 60.0, most: int = 100) -> list[consumer.Message]:
        """Have the consumer handle what waits, as Lambda does."""
        received = self.queue.receive(most)
        end = self.clock() + time_left
        messages = self.consumer.consume([one.record() for one in received], lambda: end - self.clock())
        for message in messages:
            if message.is_done:
                self.queue.delete(message.id)
        return messages

    def pass_time(self) -> None:
        """Let messages that were not deleted come again."""
        self.clock.advance(self.queue.visibility_timeout + 1)

    def post(self, *events: object, **attributes: str) -> None:
        """Queue one message."""
        typed = {name: {"DataType": "Number", "StringValue": value} for name, value in attributes.items()}
        self.queue.send(json.dumps(events), {"taken": seconds(self.clock()), **typed})

    def fail(self, patch: pytest.MonkeyPatch, error: Callable[[Mapping[str, Any]], Exception | None]) -> None:
        """Make writes of some items fail."""
        put = type(self.table).put_item

        def put_item(**request: Any) -> dict[str, Any]:
            if (raised := error(request["Item"])) is not None:
                raise raised
            return put(self.table, **request)

        patch.setattr(self.table, "put_item", put_item)

    def urls(self) -> list[str]:
        """The URLs of the events accepted."""
        return sorted(item["url"]["S"] for item in self.table.items())


def statuses(messages: Iterable[consumer.Message]) -> Counter[str]:
    return Counter(outcome.status.value for message in messages for outcome in message.outcomes)


def seconds(value: float) -> dict[str, str]:
    return {"DataType": "Number", "StringValue": str(int(value))}


def view(url: str, **more: object) -> dict[str, object]:
    return {"url": url, "time": "2026-11-20T10:00:00Z", "clientId": "c", **more}


def events_of(messages: list[Message]) -> list[list[dict[str, Any]]]:
    return [json.loads(message.body) for message in messages]
