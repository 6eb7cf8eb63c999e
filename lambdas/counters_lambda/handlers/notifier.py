"""Deliver crossings of thresholds, from the stream records of the outbox to EventBridge."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from botocore.exceptions import BotoCoreError, ClientError

from counters_lambda.counting.crossings import LASTING, event_entry, in_requests
from counters_lambda.handlers._metering import add_metrics
from dynamodb_counters import _table
from dynamodb_counters._assumptions import LONGEST_REQUEST
from dynamodb_counters._fold.records import NEW
from dynamodb_counters._items.conditions import Image

logger = Logger()
metrics = Metrics()


eventbridge = cache(lambda: _table.make_service_client("events"))  # Created when the first crossing comes.


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Send a batch of crossings in order; the response names the first one that EventBridge may still take."""
    records = event["Records"]
    table_arn = records[0]["eventSourceARN"].partition("/stream/")[0]
    delivered, refusals, undeliverable = 0, list[str](), 0
    for request in in_requests(record["dynamodb"][NEW] for record in records):
        if context.get_remaining_time_in_millis() < 1000 * LONGEST_REQUEST:
            break
        errors = _put(request, table_arn)
        refusals = [error for error in errors if error and not _lasts(error)]
        taken = errors.index(refusals[0]) if refusals else len(errors)
        delivered += taken
        if lasting := list(filter(_lasts, errors[:taken])):
            # It would hold up all others of its shard. Its item stays, and can be sent again.
            logger.error("crossings stay in the table: EventBridge can never take them: %s", lasting[0])
            undeliverable += len(lasting)
        if refusals:
            logger.error("crossings wait: EventBridge refuses them: %s", refusals[0])
            break
    counts = {"CrossingsDelivered": delivered - undeliverable, "CrossingsRefused": len(refusals)}
    add_metrics(metrics, counts | {"CrossingsUndeliverable": undeliverable})
    # Lambda delivers again from there on, also what was taken after a refusal: an event has one id whenever it is sent.
    again = records[delivered : delivered + 1]
    return {"batchItemFailures": [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]} for record in again]}


def _lasts(error: str) -> bool:
    return error.partition(":")[0] in LASTING


def _put(crossings: list[Image], table_arn: str) -> list[str]:
    """Return the error of each crossing, "" if EventBridge has taken it."""
    entries = [event_entry(crossing, table_arn, os.environ["EVENT_BUS"]) for crossing in crossings]
    try:
        answers = eventbridge().put_events(Entries=entries)["Entries"]
    except (BotoCoreError, ClientError) as error:
        return [str(error)] * len(entries)
    return [": ".join(filter(None, map(answer.get, ("ErrorCode", "ErrorMessage")))) for answer in answers]
