"""The consumer: accepts the events of messages, once, and leaves no message to its fate.

A message that can never be accepted becomes a dead letter; one that the table refused for now is sent again,
later. Both are sent by the consumer itself, so that only messages that crash it use up receives.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters import _clients
from dynamodb_counters._assumptions import LONGEST_REQUEST
from dynamodb_counters._clients import may_pass
from dynamodb_counters._declarations import Event
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._http.event_requests import envelope_problem, parse_events
from dynamodb_counters._http.requests import ProblemError, write_json
from dynamodb_counters._table import Table, ending_at, time_left
from dynamodb_counters._timeline.tiers import utc
from dynamodb_counters._writes.accept import Conflicts, accept_many
from dynamodb_counters._writes.outcomes import Outcome, OutcomeStatus
from dynamodb_counters.errors import CountersError

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

TAKEN: Final = "taken"
"""Attribute: when the API answered 202, in seconds since 1970. A message that is sent again keeps it."""

ATTEMPTS: Final = "attempts"
"""Attribute: how often the table has refused the events for now."""

REASON: Final = "reason"
"""Attribute of a dead letter."""

_MAX_REASON: Final = 500
_MILLISECONDS: Final = 10**11
"""A time above is meant in milliseconds."""

_LONGEST_DELAY: Final = 900
"""https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html"""
_FIRST_DELAY: Final = 30
_GROWTH: Final = 1.25
_MOST_GROWTHS: Final = 20

Target: TypeAlias = Literal["queue", "dead_letter_queue"]

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
_MOST_ENTRIES: Final = 10
_MOST_BYTES: Final = 250_000
"""Bytes of a batch of several messages: what every region takes, less room for attributes."""

_LONGEST_RESERVE: Final = 20.0
_SHARE_OF_A_REQUEST: Final = 0.4
_MOST_EVENTS: Final = 1000
_MOST_PACKED_EVENTS: Final = 20_000
_MOST_CHARACTERS: Final = 1_000_000
"""Characters of a slice, which is not interrupted. Packed events cost less the more of them come together."""

_GROUP: Final = 1000
_SHRINKS: Final = 3
"""Messages that came back stand in smaller groups, an eighth each time: one of them may have crashed the function."""

_SUSPICIOUS: Final = 3
"""After so many receives, a message keeps its count, so that one that crashes ends as a dead letter."""


@dataclass(slots=True, eq=False)
class Message:
    id: str
    receipt_handle: str
    body: str
    taken: float
    attempts: int
    receives: int
    events: Sequence[Any] = ()
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    unreadable: str | None = None
    crash: str | None = None
    """Error that its events raised, for a reason that is not the table's."""
    is_begun: bool = False

    def parse(self) -> None:
        """Read the events; whatever that raises, the message is not to be read again."""
        self.is_begun = True
        if self.unreadable is not None:
            return
        try:
            self.events = parse_events(self.body)
        except Exception as error:  # noqa: BLE001
            # Strangers write it: no text may stop the messages around it.
            self.unreadable = f"rejected: {error if isinstance(error, ProblemError) else type(error).__name__}"

    def indexes(self, *statuses: str) -> list[int]:
        """The events with such an outcome."""
        return [index for index, outcome in sorted(self.outcomes.items()) if outcome.status in statuses]


@dataclass(frozen=True, slots=True)
class Sending:
    """Body and attributes of a message that is sent on."""

    source: Message
    to: Target
    body: str
    attributes: Mapping[str, Mapping[str, str]]
    delay: int = 0


def read_message(record: Mapping[str, Any], now: float) -> Message:
    """The message of a Lambda record, its body not parsed yet."""
    attributes = record.get("attributes", {})
    # Without the attribute, it is from another sender: SQS knows when.
    sent = _number(attributes.get("SentTimestamp"), now)
    taken = _number(_attribute(record, TAKEN), sent)
    body = record["body"].encode(errors="replace").decode()
    return Message(
        id=record["messageId"],
        receipt_handle=record.get("receiptHandle", ""),
        body=body,
        taken=taken / 1000 if taken > _MILLISECONDS else taken,
        attempts=int(_number(_attribute(record, ATTEMPTS), 0)),
        receives=int(_number(attributes.get("ApproximateReceiveCount"), 1)),
        unreadable=None if body == record["body"] else "rejected: the body is not valid Unicode",
    )


def dead_letter(message: Message) -> Sending | None:
    """Events of a message that can never be accepted, to send on; None without any."""
    if message.unreadable is not None:
        return Sending(message, "dead_letter_queue", message.body, _attributes(message, reason=message.unreadable))
    dead = message.indexes("rejected", "too_late", "conflict")
    if not dead:
        return None
    first = message.outcomes[dead[0]]
    reason = f"{first.status}: {first.reason}"
    return Sending(message, "dead_letter_queue", _body(message, dead), _attributes(message, reason=reason))


def sent_again(message: Message, jitter: float) -> Sending | None:
    """Events of a message to try again: at once if they were not tried, later if the table refused them."""
    if not message.is_begun:
        return Sending(message, "queue", message.body, _attributes(message, message.attempts))
    failed, left = message.indexes("failed"), sorted(set(range(len(message.events))) - message.outcomes.keys())
    if not failed and not left:
        return None
    attempts, delay = message.attempts, 0
    if failed:
        delay = 1 + int(jitter * (min(_LONGEST_DELAY, _FIRST_DELAY * _GROWTH ** min(attempts, _MOST_GROWTHS)) - 1))
        attempts += 1
    body = _body(message, sorted([*failed, *left]))
    return Sending(message, "queue", body, _attributes(message, attempts), delay)


def _body(message: Message, indexes: Sequence[int]) -> str:
    """A JSON array of these events, or the whole body where that is shorter: the others are duplicates by then."""
    if len(indexes) == len(message.events):
        return message.body
    body = write_json([message.events[index] for index in indexes])
    # Escaped, a text may be longer than it was posted, and than the queue takes.
    return body if len(body) <= len(message.body.encode()) else message.body


def _attributes(message: Message, attempts: int = 0, reason: str | None = None) -> dict[str, dict[str, str]]:
    found = {TAKEN: {"DataType": "Number", "StringValue": str(int(message.taken))}}
    if attempts:
        found[ATTEMPTS] = {"DataType": "Number", "StringValue": str(attempts)}
    if reason is not None:
        # SQS takes XML's characters only.
        text = json.dumps(reason[:_MAX_REASON])[1:-1][:_MAX_REASON]
        found[REASON] = {"DataType": "String", "StringValue": text or "unknown"}
    return found


def _attribute(record: Mapping[str, Any], name: str) -> Any:
    return record.get("messageAttributes", {}).get(name, {}).get("stringValue")


def _number(text: Any, default: float) -> float:
    try:
        return float(text) if 0 <= float(text) < _MILLISECONDS * 1000 else default
    except (TypeError, ValueError):
        return default


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


_Part: TypeAlias = tuple[Message, int]


def _reserve(seconds: float) -> float:
    """Nothing new starts with less time left: a request may just have started, and what is left must be sent on."""
    return min(_LONGEST_RESERVE, seconds / 3)


def longest_request(timeout: float) -> float:
    """How long a request of a function with such a timeout may take: twice that fits into the reserve."""
    return _SHARE_OF_A_REQUEST * _reserve(timeout)


@dataclass(slots=True)
class Consumed:
    statuses: Counter[str] = field(default_factory=Counter)
    """How many events had which outcome."""
    unfinished: list[str] = field(default_factory=list)
    """The ids of messages to be delivered again."""
    again: int = 0
    """Messages sent to the queue again."""
    oldest: float = 0.0
    """Seconds for which the oldest event has been waiting that still does."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why a message became a dead letter, or could not be handled at all, by its id."""
    faults: set[str] = field(default_factory=set)
    """Errors that no event is to blame for and no retry cures: no table, no permission."""


class Consumer:
    def __init__(self, table: Table, event: Event, queues: Queues, admission: Plan | None = None) -> None:
        self._table, self._event, self._queues = table, event, queues
        self._admission = admission
        self._most_events = _MOST_EVENTS if event.packed is None else _MOST_PACKED_EVENTS
        # Conflicts as `accept` finds them: of packed events, none.
        self._conflicts: Conflicts = "read" if event.packed is None else "free"

    def consume(self, records: Sequence[Mapping[str, Any]], seconds_left: Callable[[], float]) -> Consumed:
        """Handle a batch of records in the time left."""
        now, seconds, consumed = self._table.clock(), seconds_left(), Consumed()
        with ending_at(now + seconds - _reserve(seconds)):
            groups = list(self._groups([read_message(record, now) for record in records]))
            for group in groups:
                for parts in self._slices(group):
                    self._accept(parts, consumed)
                done = self._finish(group, consumed)
                if group is not groups[-1]:
                    # The next slice may crash: nothing of what is done is to come back with it.
                    self._queues.delete(done)
        return consumed

    def _groups(self, messages: Sequence[Message]) -> Iterator[list[Message]]:
        """Messages to handle together, the least suspicious first."""
        # In another order each time they come: a message that crashes the function hides those behind it.
        order = {message.id: self._table.jitter() if message.receives > 1 else 0.0 for message in messages}
        ordered = sorted(messages, key=lambda message: (message.receives, order[message.id]))
        for receives, alike in groupby(ordered, key=lambda message: message.receives):
            size, those = max(1, _GROUP >> _SHRINKS * (receives - 1)), list(alike)
            yield from (those[start : start + size] for start in range(0, len(those), size))

    def _is_late(self) -> bool:
        return time_left(self._table.clock()) <= 0

    def _slices(self, group: Sequence[Message]) -> Iterator[list[_Part]]:
        """Events to accept together, message by message, until time is up."""
        parts: list[_Part] = []
        characters = 0
        for message in group:
            if self._is_late():
                break
            message.parse()
            if self._is_forgotten(message):
                continue
            characters += len(message.body)
            for index in range(len(message.events)):
                parts.append((message, index))
                if len(parts) == self._most_events:
                    yield parts
                    parts = []
                    if self._is_late():
                        return
            if characters >= _MOST_CHARACTERS:
                yield parts
                parts, characters = [], 0
        yield parts

    def _is_forgotten(self, message: Message) -> bool:
        """Refuse events so old that the table may not remember any more whether it had them."""
        retention = self._event.retention
        if retention is None or self._table.clock() - message.taken < retention.total_seconds():
            return False
        reason = f"taken at {utc(int(message.taken)).isoformat()}, which is as long ago as events are remembered"
        message.outcomes = dict.fromkeys(range(len(message.events)), Outcome(OutcomeStatus.TOO_LATE, reason))
        return True

    def _accept(self, parts: Sequence[_Part], consumed: Consumed) -> None:
        events = [message.events[index] for message, index in parts]
        try:
            outcomes = accept_many(self._table, self._event, events, self._refusal, self._conflicts) if events else []
        except Exception as error:  # noqa: BLE001
            reason = f"{type(error).__name__}: {error}"
            alone = [list(those) for _, those in groupby(parts, key=lambda part: part[0])]
            is_tables = isinstance(error, ClientError | BotoCoreError | TimeoutError)
            if not is_tables and len(alone) > 1:
                # A stranger's event must not take the messages around it along.
                for those in alone:
                    self._accept(those, consumed)
                return
            if not is_tables and not isinstance(error, CountersError):
                parts[0][0].crash = reason
                return
            # Which of them were accepted is not known: those will be duplicates.
            outcomes = [Outcome(OutcomeStatus.FAILED, reason)] * len(parts)
            if not may_pass(error):
                consumed.faults.add(reason)
        for (message, index), outcome in zip(parts, outcomes, strict=True):
            message.outcomes[index] = outcome

    def _refusal(self, item: Mapping[str, Any]) -> str | None:
        problem = envelope_problem(self._event, item.keys())
        if problem is not None or self._admission is None:
            return problem
        return self._admission.refusal(dict(item), self._table.clock())

    def _finish(self, group: Sequence[Message], consumed: Consumed) -> list[Message]:
        """Send on what is not accepted; return the messages that are done."""
        sendings: list[Sending] = []
        unfinished: set[str] = set()
        for message in group:
            consumed.statuses.update(outcome.status for outcome in message.outcomes.values())
            consumed.statuses["rejected"] += message.unreadable is not None
            if message.crash is not None or (not message.is_begun and message.receives > _SUSPICIOUS):
                unfinished.add(message.id)
                if message.crash is not None:
                    consumed.refused[message.id] = message.crash
                continue
            if (dead := dead_letter(message)) is not None:
                consumed.refused[message.id] = dead.attributes["reason"]["StringValue"]
                sendings.append(dead)
            if (again := sent_again(message, self._table.jitter())) is not None:
                sendings.append(again)
                consumed.again += 1
                consumed.oldest = max(consumed.oldest, self._table.clock() - message.taken)
        unfinished |= self._queues.send(sendings)
        consumed.unfinished += sorted(unfinished)
        return [message for message in group if message.id not in unfinished]
