"""The queue's consumer: accepts each event once; messages it cannot accept end in the dead-letter queue."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._http.event_requests import parse_events
from dynamodb_counters._http.problems import ProblemError
from dynamodb_counters._table import Bulk
from dynamodb_counters._writes.insert import Outcome
from dynamodb_counters.errors import CountersError

logger = Logger()
metrics = Metrics()
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


class MessageNotAcceptedError(CountersError):
    """A message holds an invalid event, or one that could not be written now."""


@dataclass(frozen=True)
class Settings:
    """The function's environment, parsed."""

    counters: Counters
    event: Event


@cache
def settings() -> Settings:
    """Parse the environment once per process."""
    [event] = decode(os.environ["DECLARATIONS"])
    # Some emulators leave PartiQL's writes out of the stream.
    bulk: Bulk = "put" if "BULK_BY_PUT" in os.environ else "partiql"
    return Settings(Counters(os.environ["TABLE_NAME"], bulk=bulk), cast("Event", event))


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Accept the events of a batch of messages; the response lists the messages to deliver again."""
    failures = _accept(event["Records"])

    def raise_if_failed(record: SQSRecord) -> None:
        if reason := failures.get(record.message_id):
            logger.warning("message not accepted", extra={"message_id": record.message_id, "reason": reason})
            raise MessageNotAcceptedError(reason)

    return dict(process_partial_response(event, raise_if_failed, processor, context))


def _accept(records: list[dict[str, Any]]) -> dict[str, str]:
    """Accept the events of all messages in one call; return the first reason of each failed message, by its id."""
    failures: dict[str, str] = {}
    message_ids: list[str] = []
    events: list[Mapping[str, Any]] = []
    for record in records:
        try:
            parsed = parse_events(record["body"])
        except ProblemError as error:
            failures[record["messageId"]] = str(error)
            continue
        message_ids += [record["messageId"]] * len(parsed)
        events += parsed
    config = settings()
    outcomes = config.counters.accept_many(config.event, events)
    for message_id, outcome in zip(message_ids, outcomes, strict=True):
        if outcome.reason is not None:
            failures.setdefault(message_id, f"{outcome.status}: {outcome.reason}")
    _add_metrics(outcomes, len(failures))
    return failures


def _add_metrics(outcomes: list[Outcome], unfinished_messages: int) -> None:
    by_status = Counter(outcome.status for outcome in outcomes)
    for name, value in (
        ("EventsAccepted", by_status["accepted"]),
        ("EventsDuplicate", by_status["duplicate"]),
        ("EventsRejected", by_status["rejected"]),
        ("EventsTooLate", by_status["too_late"]),
        ("EventsFailed", by_status["failed"]),
        ("MessagesUnfinished", unfinished_messages),
    ):
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
