"""The queue's consumer: accepts each event once; what can never be accepted ends in the dead-letter queue.

SQS delivers a message again as a whole: what was accepted of it is a duplicate then. Once none of its events may
succeed later, those that never can be accepted become a dead letter, with the reason.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from botocore.exceptions import BotoCoreError, ClientError

from counters_lambda.handlers._metering import add_metrics, add_routine
from counters_lambda.http_api.requests import ProblemError, envelope_problem, parse_events, write_json
from dynamodb_counters import _table
from dynamodb_counters._assumptions import LONGEST_REQUEST
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._table import Table, ending_at, make_client
from dynamodb_counters._writes.accept import accept_many
from dynamodb_counters._writes.outcomes import Outcome, OutcomeStatus

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

TAKEN: Final = "taken"  # Attribute: when the API answered 202, in seconds since 1970. A dead letter keeps it.
_MAX_REASON: Final = 500
_MILLISECONDS: Final = 10**11  # A time above is meant in milliseconds, as API Gateway writes it.
_BUSY: Final = 2 / 3  # Share of an invocation's time after which nothing new begins.
_REQUEST: Final = 1 / 8  # Of the time, most for a request: one may just have begun, and dead letters are to be sent.
_MOST_EVENTS: Final = 50  # Together: of a throttled table, some messages get all that they need, not all a part of it.
_MOST_PACKED_EVENTS: Final = 20_000  # Packed events cost less the more of them come together.

logger = Logger()
metrics = Metrics()


@dataclass(slots=True, eq=False)
class Message:
    id: str
    body: str
    taken: float
    events: Sequence[Any] = ()
    outcomes: list[Outcome] = field(default_factory=list)  # Of each event, or one of a body that cannot be read.

    @property
    def is_done(self) -> bool:
        """Return whether nothing of it may succeed later."""
        return all(outcome.status != OutcomeStatus.FAILED for outcome in self.outcomes)

    @property
    def dead(self) -> list[int]:
        """Return the indexes of the outcomes of what is neither accepted nor a duplicate."""
        accepted = (OutcomeStatus.ACCEPTED, OutcomeStatus.DUPLICATE)
        return [index for index, outcome in enumerate(self.outcomes) if outcome.status not in accepted]


def _message(record: Mapping[str, Any], now: float, forgotten: float) -> Message:
    """Parse the message of a Lambda record; not to be accepted if the table may have forgotten that it had it."""
    message = Message(record["messageId"], record["body"], _taken(record, now))
    try:
        message.events = parse_events(message.body)
    except Exception as error:  # noqa: BLE001
        # Strangers write it: no text may stop the messages around it.
        reason = str(error) if isinstance(error, ProblemError) else type(error).__name__
        message.outcomes.append(Outcome(OutcomeStatus.REJECTED, reason))
    else:
        late = Outcome(OutcomeStatus.TOO_LATE, "taken as long ago as events are remembered")
        message.outcomes += [late] * len(message.events) if message.taken <= forgotten else []
    return message


def _taken(record: Mapping[str, Any], now: float) -> float:
    """Return when a message was taken: of one without the attribute, from another sender, SQS knows."""
    attribute = record.get("messageAttributes", {}).get(TAKEN, {}).get("stringValue")
    for text in (attribute, record.get("attributes", {}).get("SentTimestamp")):
        with suppress(TypeError, ValueError):
            time = float(text)
            time = time / 1000 if time > _MILLISECONDS else time
            if 0 <= time < _MILLISECONDS:
                return time
    return now


@dataclass
class Consumer:
    """Accepts the events of messages, and says which messages SQS is to deliver again."""

    table: Table
    event: Event
    dead_letter_queue: str
    admission: Plan
    longest_request: float = LONGEST_REQUEST

    @cached_property
    def sqs(self) -> SQSClient:
        """Create the client when the first dead letter comes: most batches send nothing."""
        return cast("SQSClient", _table.make_service_client("sqs", self.longest_request))

    def consume(self, records: Sequence[Mapping[str, Any]], seconds_left: Callable[[], float]) -> list[Message]:
        """Accept what the messages of a batch hold, in the time left; return them, done or not."""
        now, seconds, retention = self.table.clock(), seconds_left(), self.event.retention
        # At the end of the call, when the last event is written.
        forgotten = -1.0 if retention is None else now + seconds - retention.total_seconds()
        # In another order each time: no message is always behind one that takes all the time, or kills the function.
        messages = sorted((_message(record, now, forgotten) for record in records), key=lambda _: self.table.jitter())
        pending = [(message, event) for message in messages if not message.outcomes for event in message.events]
        size = _MOST_EVENTS if self.event.packed is None else _MOST_PACKED_EVENTS
        with ending_at(now + _BUSY * seconds):
            for start in range(0, len(pending), size):
                part = pending[start : start + size]
                for (message, _), outcome in zip(part, self._outcomes([event for _, event in part]), strict=True):
                    message.outcomes.append(outcome)
        letters = [message for message in messages if message.is_done and message.dead]
        for message, error in self.table.side_by_side(self._send, letters):
            if error is not None:
                message.outcomes.append(Outcome(OutcomeStatus.FAILED, f"no dead letter was sent: {error}"))
        return messages

    def _outcomes(self, events: Sequence[Any]) -> list[Outcome]:
        try:
            return accept_many(self.table, self.event, events, self._refusal)
        except Exception as error:  # noqa: BLE001
            if isinstance(error, ClientError | BotoCoreError | TimeoutError) or len(events) == 1:
                return [Outcome(OutcomeStatus.FAILED, f"{type(error).__name__}: {error}")] * len(events)
        middle = len(events) // 2  # A stranger's event must not take those around it along.
        return self._outcomes(events[:middle]) + self._outcomes(events[middle:])

    def _refusal(self, item: Mapping[str, Any]) -> str | None:
        return envelope_problem(self.event, item.keys()) or self.admission.refusal(dict(item), self.table.clock())

    def _send(self, message: Message) -> None:
        dead = message.dead
        # Escaped, a text is up to three times as long as it was posted; the dead-letter queue takes four times as much.
        is_whole = len(dead) == len(message.outcomes)
        body = message.body if is_whole else write_json([message.events[index] for index in dead])
        reason = f"{message.outcomes[dead[0]].status}: {message.outcomes[dead[0]].reason}"
        taken = {"DataType": "Number", "StringValue": str(int(message.taken))}
        # SQS takes XML's characters only.
        text = {"DataType": "String", "StringValue": json.dumps(reason)[1:-1][:_MAX_REASON]}
        attributes: Any = {TAKEN: taken, "reason": text}
        self.sqs.send_message(QueueUrl=self.dead_letter_queue, MessageBody=body, MessageAttributes=attributes)
        logger.warning("message not accepted", extra={"message_id": message.id, "reason": reason})


@cache
def consumer() -> Consumer:
    [event] = decode(os.environ["DECLARATIONS"])
    seconds = min(LONGEST_REQUEST, _REQUEST * float(os.environ.get("TIMEOUT", "inf")))
    table = Table(os.environ["TABLE_NAME"], make_client(seconds))
    admission = Plan(decode(os.environ["AGGREGATES"]) if "AGGREGATES" in os.environ else ())
    return Consumer(table, cast("Event", event), os.environ["DEAD_LETTER_QUEUE_URL"], admission, seconds)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Accept the events of a batch of messages; the response lists the messages to deliver again."""
    messages = consumer().consume(event["Records"], lambda: context.get_remaining_time_in_millis() / 1000)
    unfinished = [message for message in messages if not message.is_done]
    outcomes = [outcome for message in messages for outcome in message.outcomes]
    statuses = Counter(outcome.status.value for outcome in outcomes)
    add_routine(logger, metrics, {"EventsAccepted": statuses["accepted"], "EventsDuplicate": statuses["duplicate"]})
    refused = {"EventsConflicting": statuses["conflict"], "EventsRejected": statuses["rejected"]}
    failed = {"EventsTooLate": statuses["too_late"], "EventsFailed": statuses["failed"]}
    add_metrics(metrics, refused | failed | {"MessagesUnfinished": len(unfinished)})
    oldest = max((consumer().table.clock() - message.taken for message in unfinished), default=0.0)
    add_metrics(metrics, {"OldestUnfinished": oldest}, MetricUnit.Seconds)
    if reasons := {outcome.reason for outcome in outcomes if outcome.status == OutcomeStatus.FAILED}:
        logger.warning("messages come again", extra={"reasons": sorted(map(str, reasons))[:5]})
    return {"batchItemFailures": [{"itemIdentifier": message.id} for message in unfinished]}
