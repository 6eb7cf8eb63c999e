"""Consumes the queue of events and accepts each once; what cannot be accepted ends in the dead-letter queue."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._http.event_requests import events_of
from dynamodb_counters._http.problems import ProblemError
from dynamodb_counters._writes.accept import Outcome
from dynamodb_counters.errors import CountersError

logger = Logger()
metrics = Metrics()
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


class UnacceptableError(CountersError):
    """A message holds something that is no event, or was not accepted for a passing reason."""


@cache
def target() -> tuple[Counters, Event]:
    """Read the function's environment, once a process.

    Returns
    -------
    tuple of Counters and Event
        Where to accept, and what.
    """
    [event] = decode(os.environ["DECLARATIONS"])
    # Some emulators put nothing into the stream that PartiQL writes.
    return Counters(os.environ["TABLE_NAME"], bulk="put" if "BULK_BY_PUT" in os.environ else "partiql"), cast(
        "Event", event
    )


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Accept the events of a batch of messages.

    Parameters
    ----------
    event : dict
        From an event source mapping that takes partial batch responses.
    context : object
        Lambda's.

    Returns
    -------
    dict
        The messages to deliver again; after some deliveries they go to the dead-letter queue.
    """
    reasons = _accept(event["Records"])

    def settle(record: SQSRecord) -> None:
        if reason := reasons.get(record.message_id):
            logger.warning("message not accepted", extra={"message_id": record.message_id, "reason": reason})
            raise UnacceptableError(reason)

    return dict(process_partial_response(event, settle, processor, context))


def _accept(records: list[dict[str, Any]]) -> dict[str, str]:
    """Accept the events of all messages at once; give why messages are not done, by their ids."""
    counters, declared = target()
    reasons: dict[str, str] = {}
    owners: list[str] = []
    events: list[Mapping[str, Any]] = []
    for record in records:
        try:
            found = events_of(record["body"])
        except ProblemError as error:
            reasons[record["messageId"]] = str(error)
            continue
        owners += [record["messageId"]] * len(found)
        events += found
    outcomes = counters.accept_many(declared, events)
    for owner, outcome in zip(owners, outcomes, strict=True):
        if outcome.reason is not None:
            reasons.setdefault(owner, f"{outcome.status}: {outcome.reason}")
    _meter(outcomes, len(reasons))
    return reasons


def _meter(outcomes: list[Outcome], unfinished: int) -> None:
    by_status = Counter(outcome.status for outcome in outcomes)
    for name, value in (
        ("EventsAccepted", by_status["accepted"]),
        ("EventsDuplicate", by_status["duplicate"]),
        ("EventsRejected", by_status["rejected"]),
        ("EventsFailed", by_status["failed"]),
        ("MessagesUnfinished", unfinished),
    ):
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
