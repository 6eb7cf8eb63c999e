"""The consumer: accepts the events of messages, and says which messages SQS is to deliver again.

A message comes again as a whole: what was accepted of it is a duplicate then. Once none of its events may succeed
later, those that never can be accepted become a dead letter, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

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

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

TAKEN: Final = "taken"
"""Attribute: when the API answered 202, in seconds since 1970. A dead letter keeps it."""

REASON: Final = "reason"
"""Attribute of a dead letter."""

_MAX_REASON: Final = 500
_MILLISECONDS: Final = 10**11
"""A time above is meant in milliseconds."""

_LONGEST_RESERVE: Final = 20.0
_SHARE_OF_A_REQUEST: Final = 0.4
_MOST_EVENTS: Final = 50
"""Events to accept together: of a throttled table, some messages get all that they need, not all a part of it."""
_MOST_PACKED_EVENTS: Final = 20_000
_MOST_CHARACTERS: Final = 1_000_000
"""Characters of a slice, which is not interrupted. Packed events cost less the more of them come together."""


@dataclass(slots=True, eq=False)
class Message:
    id: str
    body: str
    taken: float
    events: Sequence[Any] = ()
    outcomes: list[Outcome] = field(default_factory=list)
    is_done: bool = False
    """Whether nothing of it may succeed later."""
    refusal: str | None = None
    """Why it is refused as a whole."""
    fault: str | None = None
    """Error that waiting does not cure: no table, no permission, a bug."""

    def parse(self) -> None:
        try:
            self.events = parse_events(self.body)
        except Exception as error:  # noqa: BLE001
            # Strangers write it: no text may stop the messages around it.
            self.refusal = f"rejected: {error if isinstance(error, ProblemError) else type(error).__name__}"

    def dead_letter(self) -> tuple[str, str] | None:
        """Return the body and the reason of what can never be accepted."""
        if self.refusal is not None:
            return self.body, self.refusal
        dead = [
            (event, outcome)
            for event, outcome in zip(self.events, self.outcomes, strict=True)
            if outcome.status not in (OutcomeStatus.ACCEPTED, OutcomeStatus.DUPLICATE)
        ]
        if not dead:
            return None
        text = write_json([event for event, _ in dead])
        # Escaped, a text may be longer than it was posted, and than the queue takes: the others are duplicates by then.
        body = text if len(dead) < len(self.events) and len(text) <= len(self.body.encode()) else self.body
        return body, f"{dead[0][1].status}: {dead[0][1].reason}"


def read_message(record: Mapping[str, Any], now: float) -> Message:
    """Return the message of a Lambda record, its body not parsed yet."""
    attribute = record.get("messageAttributes", {}).get(TAKEN, {}).get("stringValue")
    # Without the attribute, it is from another sender: SQS knows when.
    taken = _number(attribute, _number(record.get("attributes", {}).get("SentTimestamp"), now))
    body = record["body"].encode(errors="replace").decode()
    message = Message(record["messageId"], body, taken / 1000 if taken > _MILLISECONDS else taken)
    if body != record["body"]:
        message.refusal = "rejected: the body is not valid Unicode"
    return message


def _number(text: Any, default: float) -> float:
    try:
        return float(text) if 0 <= float(text) < _MILLISECONDS * 1000 else default
    except (TypeError, ValueError):
        return default


def _reserve(seconds: float) -> float:
    """Nothing new starts with less time left: a request may just have started, and dead letters are to be sent."""
    return min(_LONGEST_RESERVE, seconds / 3)


def longest_request(timeout: float) -> float:
    """Return how long a request of a function with such a timeout may take: twice that fits into the reserve."""
    return _SHARE_OF_A_REQUEST * _reserve(timeout)


class Consumer:
    def __init__(
        self,
        table: Table,
        event: Event,
        dead_letter_queue: str,
        admission: Plan | None = None,
        longest_request: float = LONGEST_REQUEST,
    ) -> None:
        self._table, self._event, self._admission = table, event, admission
        self._dead_letter_queue, self._longest_request = dead_letter_queue, longest_request
        self._most_events = _MOST_EVENTS if event.packed is None else _MOST_PACKED_EVENTS
        # Conflicts as `accept` finds them: of packed events, none.
        self._conflicts: Conflicts = "read" if event.packed is None else "free"

    @cached_property
    def _sqs(self) -> SQSClient:
        # Most batches send nothing.
        return cast("SQSClient", _clients.make_service_client("sqs", self._longest_request))

    def consume(self, records: Sequence[Mapping[str, Any]], seconds_left: Callable[[], float]) -> list[Message]:
        """Accept what the messages of a batch hold, in the time left; return them, done or not."""
        now, seconds = self._table.clock(), seconds_left()
        # In another order each time: no message is always behind one that takes all the time, or kills the function.
        messages = sorted((read_message(record, now) for record in records), key=lambda _: self._table.jitter())
        with ending_at(now + seconds - _reserve(seconds)):
            for part in self._slices(messages):
                self._accept(part)
        letters = [(message, letter) for message in messages if message.is_done and (letter := message.dead_letter())]
        for (message, _), error in self._table.side_by_side(self._send, letters):
            message.is_done = error is None
        return messages

    def _slices(self, messages: Sequence[Message]) -> Iterator[list[Message]]:
        """Group messages to accept together, until time is up."""
        part, events, characters = list[Message](), 0, 0
        for message in messages:
            if time_left(self._table.clock()) <= 0:
                return
            if message.refusal is None:
                message.parse()
            part.append(message)
            events, characters = events + len(message.events), characters + len(message.body)
            if events >= self._most_events or characters >= _MOST_CHARACTERS:
                yield part
                part, events, characters = [], 0, 0
        if part:
            yield part

    def _accept(self, messages: Sequence[Message]) -> None:
        current = [message for message in messages if not self._is_forgotten(message)]
        events = [event for message in current for event in message.events]
        outcomes: list[Outcome] = []
        try:
            for start in range(0, len(events), self._most_events):
                part = events[start : start + self._most_events]
                if time_left(self._table.clock()) > 0:
                    outcomes += accept_many(self._table, self._event, part, self._refusal, self._conflicts)
                else:
                    outcomes += [Outcome(OutcomeStatus.FAILED, "out of time")] * len(part)
        except Exception as error:  # noqa: BLE001
            if not isinstance(error, ClientError | BotoCoreError | TimeoutError) and len(messages) > 1:
                # A stranger's event must not take the messages around it along.
                for message in messages:
                    self._accept([message])
                return
            failed = Outcome(OutcomeStatus.FAILED, f"{type(error).__name__}: {error}")
            outcomes = [failed] * len(events)
            for message in current:
                message.fault = None if may_pass(error) else failed.reason
        following = iter(outcomes)
        for message in current:
            message.outcomes = [next(following) for _ in message.events]
        for message in messages:
            message.is_done = OutcomeStatus.FAILED not in {outcome.status for outcome in message.outcomes}

    def _is_forgotten(self, message: Message) -> bool:
        """Refuse events so old that the table may not remember any more whether it had them."""
        retention = self._event.retention
        if retention is None or self._table.clock() - message.taken < retention.total_seconds():
            return False
        reason = f"taken at {utc(int(message.taken)).isoformat()}, which is as long ago as events are remembered"
        message.outcomes = [Outcome(OutcomeStatus.TOO_LATE, reason)] * len(message.events)
        return True

    def _refusal(self, item: Mapping[str, Any]) -> str | None:
        problem = envelope_problem(self._event, item.keys())
        if problem is not None or self._admission is None:
            return problem
        return self._admission.refusal(dict(item), self._table.clock())

    def _send(self, letter: tuple[Message, tuple[str, str]]) -> None:
        message, (body, reason) = letter
        attributes: Any = {
            TAKEN: {"DataType": "Number", "StringValue": str(int(message.taken))},
            # SQS takes XML's characters only.
            REASON: {"DataType": "String", "StringValue": json.dumps(reason)[1:-1][:_MAX_REASON]},
        }
        self._sqs.send_message(QueueUrl=self._dead_letter_queue, MessageBody=body, MessageAttributes=attributes)
