"""The ingest API: validates posted events and queues them; 202, or 400 with the reasons."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters import _clients
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import decode, restored
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._http.event_requests import EventCheck, posted_events, queue_messages
from dynamodb_counters._http.json_schema import compile_schema
from dynamodb_counters._http.requests import ProblemError, bound_values, cpu_limit, time_limit
from dynamodb_counters._http.responses import answered, json_response

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

logger = Logger()


@dataclass(frozen=True)
class Settings:
    """The function's environment, parsed."""

    check: EventCheck
    max_body_bytes: int
    sqs: SQSClient
    queue_url: str
    tenant: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], float] = time.time


@cache
def settings() -> Settings:
    """Parse the environment once per process."""
    [event] = decode(os.environ["DECLARATIONS"])
    schema = compile_schema(restored(os.environ["SCHEMA"])) if "SCHEMA" in os.environ else None
    admission = Plan(decode(os.environ["AGGREGATES"])) if "AGGREGATES" in os.environ else None
    return Settings(
        check=EventCheck(cast("Event", event), schema, admission),
        max_body_bytes=int(os.environ["MAX_BODY_BYTES"]),
        sqs=_clients.make_service_client("sqs"),
        queue_url=os.environ["QUEUE_URL"],
        tenant=json.loads(os.environ.get("TENANT", "{}")),
    )


def _answer(request: Mapping[str, Any], seconds_left: float) -> dict[str, Any]:
    config = settings()
    now = config.clock()
    with cpu_limit():
        bound = bound_values(config.tenant, request)
        events, is_cloud = posted_events(request, config.max_body_bytes)
        texts = config.check.texts(events, bound, now, is_cloud=is_cloud)
        messages = queue_messages(texts)
    # Some messages may be in the queue already; their events become duplicates, which are not counted.
    detail = "the events could not be queued; resend all of them"
    attributes: Any = {"taken": {"DataType": "Number", "StringValue": str(int(now))}}
    try:
        with time_limit(seconds_left, detail):
            for message in messages:
                config.sqs.send_message(QueueUrl=config.queue_url, MessageBody=message, MessageAttributes=attributes)
    except (BotoCoreError, ClientError) as error:
        logger.exception("the queue refused a message")
        raise ProblemError(detail, HTTPStatus.SERVICE_UNAVAILABLE) from error
    return json_response({"events": len(texts)}, HTTPStatus.ACCEPTED)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve a request of the HTTP API, payload format 2.0, whose one route to this function posts events."""
    return answered(lambda: _answer(event, context.get_remaining_time_in_millis() / 1000))
