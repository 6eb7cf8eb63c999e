"""The ingest API: validates posted events and queues them; 202, or 400 with the reasons."""

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
from dynamodb_counters._http.event_requests import queue_messages, validated_events
from dynamodb_counters._http.json_schema import SchemaCheck, compile_schema
from dynamodb_counters._http.problems import ProblemError
from dynamodb_counters._http.request_body import body_text
from dynamodb_counters._http.responses import json_response, problem_response

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

logger = Logger()
metrics = Metrics()
app = APIGatewayHttpResolver()


@dataclass(frozen=True)
class Settings:
    """The function's environment, parsed."""

    event: Event
    schema_check: SchemaCheck
    max_body_bytes: int
    sqs: SQSClient
    queue_url: str


@cache
def settings() -> Settings:
    """Parse the environment once per process."""
    [event] = decode(os.environ["DECLARATIONS"])
    schema = json.loads(os.environ["SCHEMA"]) if "SCHEMA" in os.environ else None
    return Settings(
        event=cast("Event", event),
        schema_check=compile_schema(schema),
        max_body_bytes=int(os.environ["MAX_BODY_BYTES"]),
        sqs=boto3.client("sqs"),
        queue_url=os.environ["QUEUE_URL"],
    )


# Any path: the API's one route to this function is configurable.
@app.route(".+", method=["POST"])
def _post_events() -> Response[str]:
    config = settings()
    text = body_text(app.current_event.raw_event, config.max_body_bytes)
    events = validated_events(config.event, text, config.schema_check)
    try:
        for message in queue_messages(events):
            config.sqs.send_message(QueueUrl=config.queue_url, MessageBody=message)
    except (BotoCoreError, ClientError) as error:
        logger.exception("the queue refused a message")
        # Some messages may be in the queue already; their events become duplicates, which are not counted.
        detail = "the events could not be queued; resend all of them"
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, detail) from error
    metrics.add_metric(name="EventsReceived", unit=MetricUnit.Count, value=len(events))
    return json_response({"events": len(events)}, HTTPStatus.ACCEPTED)


def _reject(error: ProblemError) -> Response[str]:
    metrics.add_metric(name="RequestsRefused", unit=MetricUnit.Count, value=1)
    return problem_response(error)


app.exception_handler(ProblemError)(_reject)
app.not_found(lambda _: _reject(ProblemError(HTTPStatus.NOT_FOUND, "no such resource; POST events")))


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve a request of the HTTP API, payload format 2.0."""
    return app.resolve(event, context)
