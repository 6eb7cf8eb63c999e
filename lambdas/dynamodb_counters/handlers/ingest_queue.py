"""The queue's consumer: accepts each event once; what can never be accepted ends in the dead-letter queue."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, cast

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._queue.consumer import Consumer, Message, longest_request
from dynamodb_counters._table import Bulk, Table, make_client
from dynamodb_counters.handlers._metering import add_metrics

logger = Logger()
metrics = Metrics()


@cache
def consumer() -> Consumer:
    """Create the consumer that the environment describes, once per process."""
    [event] = decode(os.environ["DECLARATIONS"])
    # Some emulators leave PartiQL's writes out of the stream.
    bulk: Bulk = "put" if "BULK_BY_PUT" in os.environ else "partiql"
    seconds = longest_request(float(os.environ.get("TIMEOUT", "inf")))
    table = Table(os.environ["TABLE_NAME"], make_client(seconds), bulk=bulk)
    admission = Plan(decode(os.environ["AGGREGATES"])) if "AGGREGATES" in os.environ else None
    return Consumer(table, cast("Event", event), os.environ["DEAD_LETTER_QUEUE_URL"], admission, seconds)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Accept the events of a batch of messages; the response lists the messages to deliver again."""
    messages = consumer().consume(event["Records"], lambda: context.get_remaining_time_in_millis() / 1000)
    _meter(messages)
    return {"batchItemFailures": [{"itemIdentifier": message.id} for message in messages if not message.is_done]}


def _meter(messages: Sequence[Message]) -> None:
    statuses = Counter(outcome.status.value for message in messages for outcome in message.outcomes)
    unfinished = [message for message in messages if not message.is_done]
    faults = {message.fault for message in messages} - {None}
    counts = {
        "EventsAccepted": statuses["accepted"],
        "EventsDuplicate": statuses["duplicate"],
        "EventsConflicting": statuses["conflict"],
        "EventsRejected": statuses["rejected"] + sum(message.refusal is not None for message in messages),
        "EventsTooLate": statuses["too_late"],
        "EventsFailed": statuses["failed"],
        "MessagesUnfinished": len(unfinished),
        "Faults": len(faults),
    }
    add_metrics(metrics, counts)
    oldest = max((time.time() - message.taken for message in unfinished), default=0.0)
    add_metrics(metrics, {"OldestUnfinished": oldest}, MetricUnit.Seconds)
    for message in messages:
        if message.is_done and (letter := message.dead_letter()):
            logger.warning("message not accepted", extra={"message_id": message.id, "reason": letter[1]})
    for fault in faults:
        logger.error("messages come again until this is repaired: %s", fault)
