"""Messages of a queue that hold events. SQS cannot search: every message is received, and let go again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from dynamodb_counters._erase.matching import Wanted
from dynamodb_counters.errors import CountersError

_HELD_SECONDS: Final = 600
"""How long messages stay with a run that died."""

_MOST: Final = 100_000
"""Somewhat fewer than SQS hands out before the first are back: 120,000.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html"""

_BATCH: Final = 10
_DECODER: Final = json.JSONDecoder(parse_float=Decimal)
_SPACE: Final = " \t\r\n"


class QueueCopies:
    """A queue of events, waiting or dead letters, by its URL."""

    def __init__(self, client: Any, url: str, wanted: Wanted, wait_seconds: int = 2) -> None:
        self._client, self._url, self._wanted = client, url, wanted
        self._wait_seconds = wait_seconds
        """A short poll asks some of SQS's servers, a long one all."""

    def sweep(self, *, writes: bool) -> int:
        """Delete messages, or put what remains of them in their place; return how many events were found."""
        found, held = 0, dict[str, str]()
        try:
            while messages := self._receive():
                if not any(message["MessageId"] not in held for message in messages):
                    break
                for message in messages:
                    here, left = remaining(message["Body"], self._wanted)
                    found += here * (message["MessageId"] not in held)
                    if here and writes:
                        self._replace(message, left)
                    else:
                        held[message["MessageId"]] = message["ReceiptHandle"]
                if len(held) > _MOST:
                    raise CountersError(f"invalid queue={self._url!r}: expected at most {_MOST:,} messages")
        finally:
            self._let_go(list(held.values()))
        return found

    def out_of_sight(self) -> int:
        """How many messages a consumer has now, or will get later: a run does not see them."""
        names = ["ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"]
        answer = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=names)
        return sum(int(answer["Attributes"][name]) for name in names)

    def _receive(self) -> list[Mapping[str, Any]]:
        answer = self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=_BATCH,
            VisibilityTimeout=_HELD_SECONDS,
            WaitTimeSeconds=self._wait_seconds,
            MessageAttributeNames=["All"],
        )
        return list(answer.get("Messages", ()))

    def _replace(self, message: Mapping[str, Any], left: str) -> None:
        # Sent before the other is deleted: twice is harmless, never is not.
        if left:
            names = ("DataType", "StringValue", "BinaryValue")
            attributes = {
                name: {part: value[part] for part in names if part in value}
                for name, value in message.get("MessageAttributes", {}).items()
                # A reason may quote what it refuses.
                if not self._wanted.is_quoted_in(value.get("StringValue", ""))
            }
            self._client.send_message(QueueUrl=self._url, MessageBody=left, MessageAttributes=attributes)
        self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])

    def _let_go(self, receipts: list[str]) -> None:
        for first in range(0, len(receipts), _BATCH):
            entries = [
                {"Id": str(index), "ReceiptHandle": receipt, "VisibilityTimeout": 0}
                for index, receipt in enumerate(receipts[first : first + _BATCH])
            ]
            self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)


def remaining(body: str, wanted: Wanted) -> tuple[int, str]:
    """How many of the events a message holds, and the message without them; "" if nothing is left."""
    try:
        texts = list(_events(body))
    except (ValueError, RecursionError):
        # It is no JSON, so it can never be accepted.
        return (1, "") if wanted.is_quoted_in(body) else (0, body)
    kept = [text for text, values in texts if not wanted.is_message(values)]
    if len(kept) == len(texts):
        return 0, body
    return len(texts) - len(kept), f"[{','.join(kept)}]" if kept else ""


def _events(body: str) -> Iterator[tuple[str, Any]]:
    """Each event as it stands in the text, and parsed."""
    document = _DECODER.decode(body)
    if not isinstance(document, list):
        yield body, document
        return
    place = body.index("[") + 1
    for values in document:
        while body[place] in _SPACE + ",":
            place += 1
        _, end = _DECODER.raw_decode(body, place)
        yield body[place:end], values
        place = end
