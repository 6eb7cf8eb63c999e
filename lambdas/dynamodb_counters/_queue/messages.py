"""Messages of the queue: what a record holds, and what is sent on of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from dynamodb_counters._http.event_requests import parse_events
from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters._http.problems import ProblemError
from dynamodb_counters._writes.outcomes import Outcome

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
