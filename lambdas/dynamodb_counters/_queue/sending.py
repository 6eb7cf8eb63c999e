"""Sending messages to the queues, ten at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from dynamodb_counters import _clients
from dynamodb_counters._assumptions import LONGEST_REQUEST
from dynamodb_counters._queue.messages import Message, Sending, Target
from dynamodb_counters._table import Table

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
_MOST_ENTRIES: Final = 10
_MOST_BYTES: Final = 250_000
"""Bytes of a batch of several messages: what every region takes, less room for attributes."""


class Queues:
    """The queue and its dead-letter queue, by URL."""

    def __init__(self, table: Table, urls: Mapping[Target, str], longest_request: float = LONGEST_REQUEST) -> None:
        self._table, self._urls, self._longest_request = table, urls, longest_request

    @cached_property
    def _sqs(self) -> SQSClient:
        # Most batches send nothing.
        return cast("SQSClient", _clients.make_service_client("sqs", self._longest_request))

    def send(self, sendings: Sequence[Sending]) -> set[str]:
        """Send messages; return the ids of the sources of those that could not be sent."""
        batches = list(_batches(sendings))
        return {
            batch[int(number)].source.id
            for batch, refused in self._table.side_by_side(self._send, batches)
            for number in (range(len(batch)) if isinstance(refused, Exception) else refused)
        }

    def delete(self, messages: Sequence[Message]) -> None:
        """Delete messages that are done, as far as that works: the others come again, as duplicates."""
        batches = [messages[start : start + _MOST_ENTRIES] for start in range(0, len(messages), _MOST_ENTRIES)]
        self._table.side_by_side(self._delete, batches)

    def _send(self, batch: Sequence[Sending]) -> list[str]:
        entries: Any = [
            {
                "Id": str(number),
                "MessageBody": sending.body,
                "MessageAttributes": sending.attributes,
                "DelaySeconds": sending.delay,
            }
            for number, sending in enumerate(batch)
        ]
        answer = self._sqs.send_message_batch(QueueUrl=self._urls[batch[0].to], Entries=entries)
        return [failed["Id"] for failed in answer.get("Failed", ())]

    def _delete(self, batch: Sequence[Message]) -> None:
        entries: Any = [{"Id": str(number), "ReceiptHandle": one.receipt_handle} for number, one in enumerate(batch)]
        self._sqs.delete_message_batch(QueueUrl=self._urls["queue"], Entries=entries)


def _batches(sendings: Sequence[Sending]) -> Iterator[list[Sending]]:
    """Group messages to one queue that one call takes; a longer one goes alone."""
    for target in ("queue", "dead_letter_queue"):
        batch, length = list[Sending](), 0
        for sending in (one for one in sendings if one.to == target):
            size = len(sending.body.encode()) + 1000
            if batch and (len(batch) == _MOST_ENTRIES or length + size > _MOST_BYTES):
                yield batch
                batch, length = [], 0
            batch.append(sending)
            length += size
        if batch:
            yield batch
