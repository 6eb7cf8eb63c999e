"""The outbox's stream on its way to the notifier, and EventBridge, which refuses events now and then."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final
from unittest.mock import patch

from dynamodb_counters.handlers import notifier
from simulation.delivery.stream_api import Source
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.memory.memory_stream import Record

_BATCHES: Final = (1, 5, 100)

LARGEST: Final = 2**63 - 1
"""Integer of JSON that EventBridge takes."""


class Bus:
    """EventBridge, which refuses all entries during an outage, some at any time, and malformed ones for ever."""

    def __init__(
        self,
        rng: random.Random,
        refuses: Callable[[], bool] = lambda: False,
        *,
        largest: int = LARGEST,
        is_lasting: Callable[[dict[str, Any]], bool] = lambda _: False,
    ) -> None:
        self.taken: list[dict[str, Any]] = []
        self._rng, self._refuses, self._largest, self._is_lasting = rng, refuses, largest, is_lasting

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        answers = []
        for entry in Entries:
            if self._refuses() or self._rng.random() < 0.2:
                answers.append({"ErrorCode": "ThrottlingException", "ErrorMessage": "Rate exceeded"})
                continue
            detail = json.loads(entry["Detail"], parse_float=Decimal)
            if is_malformed(entry["Detail"], self._largest) or self._is_lasting(detail):
                answers.append({"ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed."})
            else:
                self.taken.append(detail)
                answers.append({"EventId": "1"})
        return {"FailedEntryCount": 0, "Entries": answers}


class NotifierMapping:
    """The notifier's event source mapping: a batch of a shard is delivered again from the first failure on."""

    def __init__(self, stream: Source, rng: random.Random, bus: Bus) -> None:
        self._stream, self._rng, self.bus = stream, rng, bus
        self._after = dict[str, str]()

    def deliver(self) -> bool:
        """Deliver a batch of each shard; return whether anything is left."""
        left, unread = False, set[str | None]()
        for shard in self._stream.shards():
            records = self._stream.read(shard.id, self._after.get(shard.id), self._rng.choice(_BATCHES)).records
            if records or shard.parent in unread:
                unread.add(shard.id)
            if shard.parent in unread:
                # A child waits for its parent.
                left = True
                continue
            batch = [
                {**each, "eventSourceARN": self._stream.arn}
                for each in records
                if each["eventName"] == "INSERT" and each["dynamodb"]["NewImage"].get("_type") == {"S": "_crossing"}
            ]
            is_heard = self._rng.random() < 0.8
            failed = self.notify(batch, is_heard=is_heard) if batch else None
            done = [each["dynamodb"]["SequenceNumber"] for each in records]
            done = done if failed is None else done[: done.index(failed)]
            if done and is_heard:
                self._after[shard.id] = done[-1]
            left |= bool(records)
        return left

    def notify(self, records: Sequence[Record], *, is_heard: bool) -> str | None:  # noqa: ARG002
        """Have the notifier send a batch; return the record that it names as failed. Its answer may go unheard."""
        with (
            patch.object(notifier, "eventbridge", lambda: self.bus),
            patch.object(notifier, "add_metrics"),
            patch.object(notifier, "logger"),
            patch.dict("os.environ", EVENT_BUS="default"),
        ):
            failures = notifier.handler({"Records": records}, LAMBDA_CONTEXT)["batchItemFailures"]
        return failures[0]["itemIdentifier"] if failures else None


def is_malformed(detail: str, largest: int = LARGEST) -> bool:
    """Whether EventBridge refuses a detail for a number; those with a fraction are taken to be refused alike."""
    numbers: list[Decimal] = []

    def note(text: str) -> Any:
        numbers.append(Decimal(text))

    json.loads(detail, parse_int=note, parse_float=note)
    return not all(-largest - 1 <= number <= largest for number in numbers)
