"""Answers questions about counts over HTTP, and serves the live page where there is one."""

from __future__ import annotations

import os
import time
from functools import cache
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.metrics import MetricUnit
from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._http.documents import read_json
from dynamodb_counters._http.live_page import page_file
from dynamodb_counters._http.openapi import openapi
from dynamodb_counters._http.problems import ProblemError, refused
from dynamodb_counters._http.resources import Reading
from dynamodb_counters._http.responses import answer, body_text, problem
from dynamodb_counters.errors import InvalidArgumentError

MAX_BODY_BYTES = 1_000_000

logger = Logger()
metrics = Metrics()
app = APIGatewayHttpResolver()


@cache
def reading() -> Reading:
    """Make what answers questions, once a process.

    Returns
    -------
    Reading
        Of the declarations in the function's environment.
    """
    return Reading(Counters(os.environ["TABLE_NAME"]), decode(os.environ["DECLARATIONS"]), time.time)


@app.get("/v1/aggregates/<name>")
def get(name: str) -> Response[str]:
    """Answer what one group is."""
    return _cached(reading().get(name, _query()))


@app.get("/v1/aggregates/<name>/groups")
def groups(name: str) -> Response[str]:
    """Answer all groups that share a partition key."""
    return _cached(reading().groups(name, _query()))


@app.get("/v1/aggregates/<name>/top")
def top(name: str) -> Response[str]:
    """Answer who is first."""
    return _cached(reading().top(name, _query()))


@app.get("/v1/aggregates/<name>/histograms/<measure>")
def histogram(name: str, measure: str) -> Response[str]:
    """Answer how a measure is distributed."""
    return _cached(reading().histogram(name, measure, _query()))


@app.get("/v1/windows/<name>")
def window(name: str) -> Response[str]:
    """Answer how many in the last so long."""
    return _cached(reading().window(name, _query()))


@app.get("/v1/windows/<name>/series")
def series(name: str) -> Response[str]:
    """Answer how many in each step."""
    return _cached(reading().series(name, _query()))


@app.post("/v1/batch")
def batch() -> Response[str]:
    """Answer what many groups are."""
    text = body_text(app.current_event.raw_event, MAX_BODY_BYTES)
    try:
        document = read_json(text)
    except ValueError as error:
        raise refused(f"the body is no JSON: {error}") from None
    return answer(reading().get_many(document))


@app.get("/openapi.json")
def document() -> Response[str]:
    """Give the OpenAPI document."""
    return answer(openapi(decode(os.environ["DECLARATIONS"])), cache="public, max-age=300", known=_known())


@app.get("/")
def page() -> Response[str]:
    """Give the live page."""
    return page_file("index.html", _known())


@app.get("/page/<name>")
def part_of_page(name: str) -> Response[str]:
    """Give a file of the live page."""
    return page_file(name, _known())


def _query() -> str:
    return str(app.current_event.raw_event.get("rawQueryString") or "")


def _known() -> str | None:
    known: str | None = app.current_event.headers.get("if-none-match")
    return known


def _cached(body: dict[str, Any]) -> Response[str]:
    return answer(body, cache=os.environ.get("CACHE_CONTROL", "no-store"), known=_known())


def _refuse(error: ProblemError) -> Response[str]:
    metrics.add_metric(name="RequestsRefused", unit=MetricUnit.Count, value=1)
    return problem(error)


def _unavailable(error: Exception) -> Response[str]:
    logger.error("the table refused a read", exc_info=error)
    metrics.add_metric(name="ReadsFailed", unit=MetricUnit.Count, value=1)
    return problem(ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "the counts cannot be read now; ask again"))


app.exception_handler(ProblemError)(_refuse)
app.exception_handler(InvalidArgumentError)(lambda error: _refuse(refused(str(error))))
app.exception_handler([ClientError, BotoCoreError])(_unavailable)
app.not_found(lambda _: _refuse(ProblemError(HTTPStatus.NOT_FOUND, "nothing is here; /openapi.json tells what is")))


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
    metrics.add_metric(name="Requests", unit=MetricUnit.Count, value=1)
    return app.resolve(event, context)
