"""The receiver refuses before anything costs time, and all that DynamoDB or the declarations cannot take."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from typing import Any
from unittest.mock import Mock

import pytest

from counters_lambda.handlers import ingest_http
from counters_lambda.http_api.json_schema import compile_schema
from counters_lambda.http_api.requests import (
    MAX_LEVELS,
    EventCheck,
    ProblemError,
    cpu_limit,
    parse_events,
    queue_messages,
    read_json,
    time_limit,
    write_json,
)
from dynamodb_counters import Aggregate, Count, Sum, Window
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters.errors import InvalidArgumentError
from simulation.handler_process import LAMBDA_CONTEXT
from tests.cpu_time import cpu_seconds_below
from tests.unit.http_api.handlers import HIT, NOW, VIEW, Queue, call_ingest, counters_of, ranked_table, receive, request

JSON = {"content-type": "application/json"}
_PARSE = ingest_http.check.__wrapped__
GOOD: dict[str, Any] = {"url": "/", "time": "2026-09-21T14:13:20Z", "clientId": "c"}


def post(*events: Mapping[str, Any] | str) -> tuple[int, Any]:
    body = ",".join(event if isinstance(event, str) else json.dumps(event) for event in events)
    return call_ingest(request("POST", "/events", body=f"[{body}]", headers=JSON))


def with_json(name: str, value: str) -> str:
    """Return a good event with an attribute as JSON."""
    return f"{json.dumps({key: item for key, item in GOOD.items() if key != name})[:-1]},{json.dumps(name)}:{value}}}"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_events_are_posted_and_nothing_else(queue: Queue, method: str) -> None:
    """A function URL has no route that would refuse it."""
    before = len(queue.messages)
    statuses = [call_ingest(request(name, "/", body=json.dumps(GOOD), headers=JSON))[0] for name in (method, "POST")]
    assert (statuses, len(queue.messages) - before) == ([405, 202], 1)
    refusal = ingest_http.handler(request(method, "/"), LAMBDA_CONTEXT)
    assert refusal["headers"]["Allow"] == "POST"


def test_events_that_the_declarations_could_not_fold_are_refused_with_the_reason(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = (
        Window("recent", VIEW, pk="URL#{url}", time="time", retention=timedelta(days=7)),
        Aggregate("sums", VIEW, pk="S#{url}", sk="S", measures={"n": Count(), "bytes": Sum("bytes")}),
    )
    environment = {
        "DECLARATIONS": encode((VIEW,)),
        "AGGREGATES": encode(declared),
        "SCHEMA": json.dumps({"properties": {"time": {"type": "string", "pattern": r"^\d+-\d+-\d+T\d+:\d+:\d+Z$"}}}),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        inbox = receive(monkeypatch, _PARSE())

    good = {**GOOD, "bytes": 1}
    status, problem = post(good, {**good, "time": "2026-19-39T29:59:59Z"}, {**GOOD, "bytes": "1"}, {**good, "time": 1})

    assert status == 400
    assert {error["index"]: error["detail"] for error in problem["errors"]} == {
        1: "recent: '2026-19-39T29:59:59Z' is not an ISO 8601 time",
        2: "sums: attribute 'bytes' is not a number",
        3: "data.time must be string",
    }
    assert inbox.messages == []
    assert post(good)[0] == 202


REFUSED = {
    "large": "1E126",
    "negative": "-1e126",
    "small": "1e-131",
    "huge": "1E+999999999",
    "no number": "NaN",
    "39 digits": "9" * 39,
    "38 zeros": "1" + "0" * 38,
    "4301 digits": "9" * 4301,
    "beyond decimals": "1E99999999999999999999",
    "surrogate": '"\\ud800"',
    "empty name": '{"":1}',
    "long name": f'{{"{"n" * 65_536}":1}}',
    "33 levels": "[" * 33 + "]" * 33,
    "500 levels": '{"a":' * 500 + "1" + "}" * 500,
}
TAKEN = {
    "large": "9.9e125",
    "small": "1e-130",
    "38 digits": "9" * 38,
    "32 levels": "[" * 31 + "1" + "]" * 31,
    "long name": f'{{"{"n" * 65_535}":1}}',
}


@pytest.mark.parametrize(("name", "place"), [("url", "{}"), ("more", "{}"), ("more", "[{}]"), ("more", '{{"a":{}}}')])
@pytest.mark.parametrize("kind", REFUSED)
def test_values_that_dynamodb_refuses_are_refused_wherever_they_stand(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, name: str, place: str, kind: str
) -> None:
    value = REFUSED[kind]
    for event in (VIEW, HIT):
        inbox = receive(monkeypatch, EventCheck(event))
        status, problem = post(GOOD, with_json(name, place.format(value)))
        assert status == 400
        assert len(json.dumps(problem)) < 2000
        assert inbox.messages == []
    table = ranked_table()
    try:
        events = parse_events(f"[{with_json(name, place.format(value))}]")
    except ProblemError:
        return  # Nothing is read of such a message.
    for event in (VIEW, HIT):
        assert counters_of(table).accept_many(event, events)[0].status == "rejected"


@pytest.mark.parametrize("kind", TAKEN)
def test_values_that_dynamodb_just_takes_are_taken(queue: Queue, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    receive(monkeypatch, EventCheck(VIEW))
    assert post(with_json("more", TAKEN[kind])) == (202, {"events": 1})


@pytest.mark.parametrize("levels", [MAX_LEVELS + 1, 100, 976, 977, 988, 1000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"]":', "}]")])
def test_a_deep_document_is_refused_by_its_text(levels: int, opening: str, closing: str) -> None:
    with pytest.raises(ValueError, match="nested deeper than 34 levels"):
        read_json(opening * levels + "1" + closing * levels)
    with pytest.raises(ValueError, match="nested deeper than 34 levels"):
        read_json(opening * levels)


def test_json_keeps_every_digit_of_a_fraction() -> None:
    assert read_json('{"price": 0.1}') == {"price": Decimal("0.1")}
    text = '{"sum":0.10000000000000000000000001}'
    assert write_json(read_json(text)) == text


@pytest.mark.parametrize("text", ["[" * 99, '\\"' + "[{" * 50, "\\" * 7 + '"' + "[" * 50, '"' * 60 + "{" * 60])
def test_brackets_in_texts_are_no_levels(text: str) -> None:
    document = {text: [text, {"a": text}]}
    assert read_json(json.dumps(document)) == document
    deep, levels = json.dumps(document), MAX_LEVELS - 3
    assert read_json(f"{'[' * levels}{deep}{']' * levels}")
    with pytest.raises(ValueError, match="nested deeper than 34 levels"):
        read_json(f"{'[' * levels}[{deep}]{']' * levels}")


def test_a_request_has_a_budget_of_values(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    receive(monkeypatch, EventCheck(VIEW))
    numbers = ",".join(["1"] * (50_000 - 10))
    # It takes a seventh of the time that a request may take; what other tests have left to collect could take the rest.
    gc.collect()
    assert post(with_json("more", f"[{numbers}]"))[0] == 202
    status, problem = post(with_json("more", f"[{numbers},1,1,1,1,1,1,1,1,1,1]"))
    assert (status, "limit: 50000" in problem["detail"]) == (400, True)


def test_a_schema_knows_fractions_as_they_are_written(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    price = {"properties": {"price": {"multipleOf": 0.01, "minimum": 0.1, "enum": [0.1, 1.5, 2.125]}}}
    receive(monkeypatch, EventCheck(VIEW, compile_schema(price)))
    assert post({**GOOD, "price": 1.5}, {**GOOD, "clientId": "d", "price": 0.1})[0] == 202
    assert post({**GOOD, "price": 2.125})[0] == 400


def test_calls_that_take_too_long_are_a_problem_and_no_others_are() -> None:
    with pytest.raises(ProblemError, match="cannot be read now") as over, time_limit(0, "it cannot be read now"):
        time.sleep(5)
    assert over.value.status == 503
    with cpu_limit(), time_limit(60, "it is over"):
        pass


def test_a_limit_that_was_not_heeded_is_raised_again() -> None:
    def deaf() -> None:
        with suppress(BaseException):
            _spend(1.0)
        _spend(1.0)

    with pytest.raises(ProblemError), cpu_limit(0.05):
        deaf()


def _spend(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


@pytest.mark.parametrize("time", ["yesterday", "2026-09-21T14:13:20", 10**15, "9999-12-31T23:59:59-23:59"])
def test_a_packed_event_without_a_clear_time_is_refused_at_the_door(time: object) -> None:
    body = json.dumps([GOOD, {**GOOD, "time": time}])
    with pytest.raises(ProblemError) as problem:
        EventCheck(HIT).texts(parse_events(body), {})
    [error] = problem.value.errors
    assert error["index"] == 1
    assert str(time) in error["detail"]
    assert len(EventCheck(VIEW).texts(parse_events(body), {})) == 2


def test_short_events_share_a_message() -> None:
    assert queue_messages(['{"url":"/a"}', '{"url":"/b"}']) == ['[{"url":"/a"},{"url":"/b"}]']


def test_each_message_says_when_its_events_were_taken(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    send = Mock()
    monkeypatch.setattr(receive(monkeypatch, EventCheck(VIEW)), "send_message", send)
    post(GOOD)
    attributes = {"taken": {"DataType": "Number", "StringValue": str(int(NOW))}}
    assert send.call_args.kwargs["MessageAttributes"] == attributes


_HUGE: dict[str, Any] = {
    "text": "x" * 10**6,
    "list": ["x" * 10**6] * 10**6,
    "map": {str(number): number for number in range(10**5)},
    "number": 10**5000,
}


@pytest.mark.parametrize("kind", _HUGE)
def test_no_error_shows_more_of_a_value_than_anybody_reads(kind: str) -> None:
    with cpu_seconds_below(0.1):
        assert len(str(InvalidArgumentError("n" * 10**6, _HUGE[kind], "less"))) < 400
