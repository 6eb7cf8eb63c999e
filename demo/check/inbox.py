"""Events of crossed thresholds, received as any consumer would: from the queue that a rule sends to."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any


class Inbox:
    """The events of a queue."""

    def __init__(self, sqs: Any, queue_url: str) -> None:
        self._sqs, self._queue_url = sqs, queue_url
        self._crossings: dict[str, str] = {}

    def read(self) -> dict[str, float]:
        """Take what has arrived, and count by group, direction and level; a crossing that comes again has one id."""
        while messages := self._received():
            for message in messages:
                detail = json.loads(message["Body"])["detail"]
                group = " ".join(detail["group"].values())
                self._crossings[detail["id"]] = f"{group} {detail['direction']} {detail['level']}"
                self._sqs.delete_message(QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"])
        return dict(Counter(self._crossings.values()))

    def _received(self) -> list[dict[str, Any]]:
        batch: list[dict[str, Any]] = self._sqs.receive_message(QueueUrl=self._queue_url, MaxNumberOfMessages=10).get(
            "Messages", []
        )
        return batch
