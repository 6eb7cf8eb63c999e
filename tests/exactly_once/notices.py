"""The outbox's stream on its way to the notifier, and EventBridge, which refuses events now and then."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final
from unittest.mock import DEFAULT, patch

from counters_lambda.handlers import notifier
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.delivery.stream_api import Source
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.memory.memory_stream import Record
from simulation.memory.typed_values import Item

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
        self.details: list[dict[str, Any]] = []
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
                self.details.append(detail)
                answers.append({"EventId": "1"})
        return {"FailedEntryCount": 0, "Entries": answers}


class NotifierMapping:
    """The notifier's event source mapping: a batch of a shard is delivered again from the first failure on."""

    def __init__(self, stream: Source, rng: random.Random, bus: Bus) -> None:
        # Nothing is so old that it is given up.
        settings = Settings(window_seconds=0, report_item_failures=True)
        self._mapping = EventSourceMapping(stream, lambda: 0.0, settings)
        self._rng, self.bus = rng, bus

    def deliver(self) -> bool:
        """Deliver a batch of each shard; return whether anything may be left. An answer may go unheard."""
        begun, has_more = self._mapping.shards(), False
        silent = {"eventbridge": lambda: self.bus, "add_metrics": DEFAULT, "logger": DEFAULT}
        for shard in begun:
            delivery = self._mapping.poll(shard, self._rng.choice(_BATCHES))
            if delivery is None:
                continue
            has_more = True
            records = list(filter(_is_crossing, delivery.records))
            with patch.multiple(notifier, **silent), patch.dict("os.environ", EVENT_BUS="default"):
                answer = dict(notifier.handler({"Records": records}, LAMBDA_CONTEXT)) if records else {}
            if self._rng.random() < 0.8:
                self._mapping.settle(delivery, answer)
            else:
                self._mapping.fail(delivery)
        return has_more or self._mapping.shards() != begun


def _is_crossing(record: Record) -> bool:
    """Return the filter of the mapping."""
    image: Item = record["dynamodb"].get("NewImage", {})
    return record["eventName"] == "INSERT" and image.get("_type") == {"S": "_crossing"}


def is_malformed(detail: str, largest: int = LARGEST) -> bool:
    """Return whether EventBridge refuses a detail for a number; those with a fraction are taken to be refused alike."""
    numbers: list[str] = []
    json.loads(detail, parse_int=numbers.append, parse_float=numbers.append)
    return not all(-largest - 1 <= Decimal(number) <= largest for number in numbers)
