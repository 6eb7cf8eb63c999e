"""Checks the events of an HTTP request and puts them into the queue: 202, or 400 with the reasons."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import boto3
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.metrics import MetricUnit
from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._http.event_requests import Check, messages_of, require_events
from dynamodb_counters._http.json_schema import schema_check
from dynamodb_counters._http.problems import ProblemError
from dynamodb_counters._http.responses import answer, body_text, problem

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

logger = Logger()
metrics = Metrics()
app = APIGatewayHttpResolver()


@dataclass(frozen=True)
class Receiver:
    """What the function's environment says."""

    event: Event
    schema: Check
    queue_url: str
    most_bytes: int
    queue: SQSClient


@cache
def receiver() -> Receiver:
    """Read the function's environment, once a process.

    Returns
    -------
    Receiver
        Ready for requests.
    """
    [event] = decode(os.environ["DECLARATIONS"])
    schema = json.loads(os.environ["SCHEMA"]) if "SCHEMA" in os.environ else None
    return Receiver(
        cast("Event", event),
        schema_check(schema),
        os.environ["QUEUE_URL"],
        int(os.environ["MAX_BODY_BYTES"]),
        boto3.client("sqs"),
    )


# Whatever the path and method: the API has one route to this function.
@app.route(".+", method=["POST"])
def receive() -> Response[str]:
    """Take the events of a request.

    Returns
    -------
    Response
        202 when all of them are in the queue.
    """
    known = receiver()
    text = body_text(app.current_event.raw_event, known.most_bytes)
    events = require_events(known.event, text, known.schema)
    try:
        for message in messages_of(events):
            known.queue.send_message(QueueUrl=known.queue_url, MessageBody=message)
    except (BotoCoreError, ClientError) as error:
        logger.exception("the queue refused a message")
        # Some of them may be in the queue: sent again, those are duplicates, which are not counted.
        detail = "the events could not be taken; send all of them again"
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, detail) from error
    metrics.add_metric(name="EventsReceived", unit=MetricUnit.Count, value=len(events))
    return answer({"events": len(events)}, status=HTTPStatus.ACCEPTED)


def refuse(error: ProblemError) -> Response[str]:
    """Tell what is wrong with a request.

    Parameters
    ----------
    error : ProblemError
        What is wrong.

    Returns
    -------
    Response
        A problem document.
    """
    metrics.add_metric(name="RequestsRefused", unit=MetricUnit.Count, value=1)
    return problem(error)


app.exception_handler(ProblemError)(refuse)
app.not_found(lambda _: refuse(ProblemError(HTTPStatus.NOT_FOUND, "events are posted; there is nothing else here")))


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer a request of the HTTP API.

    Parameters
    ----------
    event : dict
        Payload format 2.0.
    context : object
        Lambda's.

    Returns
    -------
    dict
        The answer.
    """
    return app.resolve(event, context)
