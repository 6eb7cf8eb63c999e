"""The ingest API: validates posted events and queues them; 202, or 400 with the reasons."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, cast

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from counters_lambda.http_api import requests
from counters_lambda.http_api.json_schema import compile_schema
from counters_lambda.http_api.requests import EventCheck, ProblemError
from dynamodb_counters import _table
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import decode, restored
from dynamodb_counters._fold.plan import Plan

logger = Logger()


@cache
def check() -> EventCheck:
    [event] = decode(os.environ["DECLARATIONS"])
    schema = compile_schema(restored(os.environ["SCHEMA"])) if "SCHEMA" in os.environ else None
    admission = Plan(decode(os.environ["AGGREGATES"])) if "AGGREGATES" in os.environ else None
    return EventCheck(cast("Event", event), schema, admission)


sqs = cache(lambda: _table.make_service_client("sqs"))


def _answer(request: Mapping[str, Any], seconds_left: float) -> dict[str, Any]:
    # Unlike a route of an API, a function URL takes every method.
    if request["requestContext"]["http"]["method"] != "POST":
        raise ProblemError("events are posted", HTTPStatus.METHOD_NOT_ALLOWED)
    taken = str(int(check().clock()))
    with requests.cpu_limit():
        bound = requests.bound_values(json.loads(os.environ.get("TENANT", "{}")), request)
        events, is_cloud = requests.posted_events(request, int(os.environ["MAX_BODY_BYTES"]))
        texts = check().texts(events, bound, is_cloud=is_cloud)
        messages = requests.queue_messages(texts)
    # Some messages may be in the queue already; their events become duplicates, which are not counted.
    detail = "the events could not be queued; resend all of them"
    queue, attributes = os.environ["QUEUE_URL"], {"taken": {"DataType": "Number", "StringValue": taken}}
    try:
        with requests.time_limit(seconds_left, detail):
            for message in messages:
                sqs().send_message(QueueUrl=queue, MessageBody=message, MessageAttributes=attributes)
    except (BotoCoreError, ClientError) as error:
        logger.exception("the queue refused a message")
        raise ProblemError(detail, HTTPStatus.SERVICE_UNAVAILABLE) from error
    return requests.json_response({"events": len(texts)}, HTTPStatus.ACCEPTED)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve a request of an HTTP API or a function URL, payload format 2.0, that posts events."""
    return requests.answered(lambda: _answer(event, context.get_remaining_time_in_millis() / 1000))
