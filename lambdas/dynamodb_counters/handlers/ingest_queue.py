"""The queue's consumer: accepts each event once; what can never be accepted ends in the dead-letter queue."""

from __future__ import annotations

import os
from functools import cache
from typing import Any, cast

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._queue.consumer import Consumed, Consumer, Queues, Target, longest_request
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
    urls: dict[Target, str] = {
        "queue": os.environ["QUEUE_URL"],
        "dead_letter_queue": os.environ["DEAD_LETTER_QUEUE_URL"],
    }
    admission = Plan(decode(os.environ["AGGREGATES"])) if "AGGREGATES" in os.environ else None
    return Consumer(table, cast("Event", event), Queues(table, urls, seconds), admission)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Accept the events of a batch of messages; the response lists the messages to deliver again."""
    consumed = consumer().consume(event["Records"], lambda: context.get_remaining_time_in_millis() / 1000)
    _meter(consumed)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in consumed.unfinished]}


def _meter(consumed: Consumed) -> None:
    counts = {
        "EventsAccepted": consumed.statuses["accepted"],
        "EventsDuplicate": consumed.statuses["duplicate"],
        "EventsConflicting": consumed.statuses["conflict"],
        "EventsRejected": consumed.statuses["rejected"],
        "EventsTooLate": consumed.statuses["too_late"],
        "EventsFailed": consumed.statuses["failed"],
        "MessagesUnfinished": len(consumed.unfinished),
        "MessagesSentAgain": consumed.again,
        "Faults": len(consumed.faults),
    }
    add_metrics(metrics, counts)
    add_metrics(metrics, {"OldestSentAgain": consumed.oldest}, MetricUnit.Seconds)
    for message_id, reason in consumed.refused.items():
        logger.warning("message not accepted", extra={"message_id": message_id, "reason": reason})
    for fault in consumed.faults:
        logger.error("nothing can be accepted; the events are sent again until this is repaired: %s", fault)
