"""SQS in memory, and Lambda's event source mapping of a queue.

A queue has visibility timeouts, receive counts, a redrive policy, retention, limits, and messages that repeat.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, TypeAlias

from simulation.memory.client_errors import failure
from simulation.queue.virtual_threads import KilledError, Task, VirtualThreads

MAX_BYTES: Final = 1_048_576
"""Limit of a message with its attributes, and of a batch: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html"""
_MAX_ATTRIBUTES: Final = 10

MOST_IN_FLIGHT: Final = 120_000
MOST_RECEIVES: Final = 718
HIDDEN_SECONDS: Final = 361.0
KEPT_SECONDS: Final = 4 * 86_400.0
MOST_BYTES: Final = 262_144
"""The construct's redrive policy, visibility timeout, retention and longest message, by default."""

MOST_INVOCATIONS: Final = 1250
_FIRST_INVOCATIONS, _MORE_PER_SECOND = 5, 300 / 60
"""Invocations that Lambda runs at a time while messages wait."""

Consume: TypeAlias = Callable[[list[dict[str, Any]], Callable[[], float]], Collection[str]]
"""Handles records with a function that returns the seconds left; returns the ids of messages to deliver again."""

_TICK, _LATENCY = 0.25, 0.01
_BATCH, _WINDOW, _TIMEOUT = 100, 1.0, 60.0
"""The construct's longest batch, the seconds that Lambda waits for it, and those that an invocation has."""


@dataclass(eq=False)
class Message:
    """A message of a queue."""

    id: str
    body: str
    attributes: Mapping[str, Mapping[str, str]]
    sent_at: float
    visible_at: float
    receives: int = 0
    is_deleted: bool = False

    def record(self) -> dict[str, Any]:
        """Return the record that Lambda hands to a function."""
        sent_at = str(int(self.sent_at * 1000))
        return {
            "messageId": self.id,
            "receiptHandle": self.id,
            "body": self.body,
            "attributes": {"ApproximateReceiveCount": str(self.receives), "SentTimestamp": sent_at},
            "messageAttributes": {
                name: {"stringValue": value["StringValue"], "dataType": value["DataType"]}
                for name, value in self.attributes.items()
            },
            "eventSource": "aws:sqs",
        }


@dataclass
class Queue:
    """A standard queue; after `max_receives`, a message goes to the dead letters."""

    clock: Callable[[], float]
    visibility_timeout: float = HIDDEN_SECONDS
    max_receives: int = MOST_RECEIVES
    most_in_flight: int = MOST_IN_FLIGHT
    dead_letters: Queue | None = None
    max_bytes: int = MAX_BYTES
    twice: Callable[[], bool] = lambda: False
    """Whether a message that was deleted comes once more."""
    received: int = 0
    expired: int = 0
    _hidden: list[tuple[float, int, Message]] = field(default_factory=list)
    _visible: deque[Message] = field(default_factory=deque)
    _in_flight: dict[str, Message] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)

    def messages(self) -> list[Message]:
        """All messages that are not deleted, those in flight included."""
        return [message for _, _, message in self._hidden if not message.is_deleted] + list(self._visible)

    def send(self, body: str, attributes: Mapping[str, Mapping[str, str]] | None = None) -> str:
        """Send a message; refuse what SQS refuses."""
        attributes = attributes or {}
        # Names, types and values of the attributes count, too.
        texts = [text for name, value in attributes.items() for text in (name, *value.values())]
        size = len("".join([body, *texts]).encode())
        if not body or size > self.max_bytes or len(attributes) > _MAX_ATTRIBUTES:
            raise failure("SendMessage", "InvalidParameterValue", f"{size} bytes")
        now = self.clock()
        message = Message(str(next(self._numbers)), body, attributes, now, now)
        self._hide(message)
        return message.id

    def visible(self) -> int:
        """Return how many messages can be received now."""
        now = self.clock()
        while self._hidden and self._hidden[0][0] <= now:
            _, _, message = heappop(self._hidden)
            self._in_flight.pop(message.id, None)
            if not message.is_deleted:
                self._visible.append(message)
        return len(self._visible)

    def oldest_visible(self) -> float:
        """Since when the next message can be received."""
        return self._visible[0].visible_at

    def receive(self, most: int) -> list[Message]:
        """Receive up to `most` messages, hidden from now on until the visibility timeout is over."""
        messages: list[Message] = []
        while len(messages) < most and self.visible() and len(self._in_flight) < self.most_in_flight:
            message = self._visible.popleft()
            # With the time that it spent in another queue.
            if self.clock() - message.sent_at > KEPT_SECONDS:
                self.expired += 1
                continue
            if message.receives >= self.max_receives and self.dead_letters is not None:
                # A standard queue keeps the time of the first sending.
                self.dead_letters._hide(replace(message, receives=0))
                continue
            message.receives += 1
            message.visible_at = self.clock() + self.visibility_timeout
            self._hide(message)
            self._in_flight[message.id] = message
            messages.append(message)
        self.received += len(messages)
        return messages

    def delete(self, receipt_handle: str) -> None:
        """Delete a message that was received."""
        message = self._in_flight.get(receipt_handle)
        if message is not None and not self.twice():
            message.is_deleted = True
            del self._in_flight[receipt_handle]

    def redrive(self, to: Queue) -> int:
        """Move all messages, as StartMessageMoveTask does: new messages with the same attributes."""
        moved = self.messages()
        for message in moved:
            to.send(message.body, message.attributes)
        self._hidden.clear()
        self._visible.clear()
        return len(moved)

    def _hide(self, message: Message) -> None:
        heappush(self._hidden, (message.visible_at, next(self._numbers), message))


@dataclass
class SQS:
    """A client of queues by their URL; `refuses` makes a call fail."""

    queues: Mapping[str, Queue]
    sleep: Callable[[float], None] = lambda _: None
    refuses: Callable[[], bool] = lambda: False

    def send_message(self, **request: Any) -> dict[str, Any]:
        self.sleep(_LATENCY)
        if self.refuses():
            raise failure("SendMessage", "ServiceUnavailable")
        queue = self.queues[request["QueueUrl"]]
        return {"MessageId": queue.send(request["MessageBody"], request.get("MessageAttributes"))}


@dataclass
class Poller:
    """Polls a queue and hands its messages to invocations of a consumer."""

    threads: VirtualThreads
    queue: Queue
    consume: Consume
    max_concurrency: int = MOST_INVOCATIONS
    invocations: int = 0
    killed: int = 0
    _running: list[Task] = field(default_factory=list)
    _busy_since: float = math.inf

    def run(self, longest: float) -> None:
        """Poll until nothing is left, or time is up; raise what the consumer raised."""
        end = self.threads.clock() + longest
        while (self.queue.messages() or self._running) and self.threads.clock() < end:
            self._poll()
            self.threads.clock.advance(_TICK)
            for task in self._running:
                if task.is_done:
                    task.result()
            self._running = [task for task in self._running if not task.is_done]

    def _poll(self) -> None:
        now = self.threads.clock()
        if not self.queue.visible() and not self._running:
            self._busy_since = math.inf
            return
        self._busy_since = min(self._busy_since, now)
        most = int(_FIRST_INVOCATIONS + _MORE_PER_SECOND * (now - self._busy_since))
        while len(self._running) < min(most, self.max_concurrency) and (waiting := self.queue.visible()):
            if waiting < _BATCH and now - self.queue.oldest_visible() < _WINDOW:
                break
            if not (messages := self.queue.receive(_BATCH)):
                break
            self._invoke(messages)

    def _invoke(self, messages: Sequence[Message]) -> None:
        ends_at = self.threads.clock() + _TIMEOUT
        self.invocations += 1

        def work() -> None:
            try:
                again = self.consume([message.record() for message in messages], lambda: ends_at - self.threads.clock())
            except KilledError:
                self.killed += 1
                return
            for message in messages:
                if message.id not in again:
                    self.queue.delete(message.id)

        self._running.append(self.threads.start(work, ends_at))
