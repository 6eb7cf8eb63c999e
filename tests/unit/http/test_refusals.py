"""Rejected requests: each problem names its cause; and parts of requests by themselves."""

from __future__ import annotations

import json
from http import HTTPStatus
from urllib.parse import urlencode

import pytest

from dynamodb_counters._http.event_requests import EventCheck, parse_events, queue_messages
from dynamodb_counters._http.requests import ProblemError
from dynamodb_counters._reads.question import Position
from tests.unit.http.handlers import HIT, NOW, VIEW, call_api, call_ingest, request

pytestmark = pytest.mark.usefixtures("queue")
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "moment", ["1969-12-31T23:59:59Z", "9999-01-01T00:00:00Z", "2026-09-21T14:13:20", "0001-01-01T00:00:00Z", "now", ""]
)
@pytest.mark.parametrize("path", ["/v1/rolling", "/v1/rolling/series"])
def test_a_window_is_not_asked_about_a_time_beyond_the_calendar(path: str, moment: str) -> None:
    query = {"url": "/", "as_of": moment, **({"step": "1h"} if path.endswith("series") else {})}
    status, problem = call_api(request("GET", path, urlencode(query)))
    assert status == 400
    assert f"invalid as_of={moment!r}: expected" in problem["detail"]


@pytest.mark.parametrize("query", ["url=%ff", "&".join(["url=/"] * 101)])
def test_a_query_that_is_no_text_or_has_too_many_parts_is_refused(query: str) -> None:
    status, problem = call_api(request("GET", "/v1/rolling", query))
    assert (status, problem["detail"]) == (400, "invalid query string: expected UTF-8 with at most 100 parameters")


@pytest.mark.parametrize("event", [1, "x", None, True, ["nested"]])
def test_an_event_that_is_no_object_is_named_by_its_place(event: object) -> None:
    good = {"url": "/", "time": "2026-09-21T14:13:20Z", "clientId": "c"}
    status, problem = call_ingest(request("POST", "/events", body=json.dumps([good, event]), headers=JSON))
    assert status == 400
    assert problem["errors"] == [{"index": 1, "detail": "expected a JSON object"}]


@pytest.mark.parametrize("time", ["yesterday", "2026-09-21T14:13:20", 10**15, "9999-12-31T23:59:59-23:59"])
def test_a_packed_event_without_a_clear_time_is_refused_at_the_door(time: object) -> None:
    good = {"url": "/", "time": "2026-09-21T14:13:20Z", "clientId": "c"}
    body = json.dumps([good, {**good, "time": time}])
    with pytest.raises(ProblemError) as refused:
        EventCheck(HIT).texts(parse_events(body), {}, NOW)
    [error] = refused.value.errors
    assert error["index"] == 1
    assert str(time) in error["detail"]
    assert len(EventCheck(VIEW).texts(parse_events(body), {}, NOW)) == 2


def test_a_token_names_the_position_it_was_made_of() -> None:
    assert Position.parse("next", Position(1, "URL#/", "T#1").token) == Position(1, "URL#/", "T#1")


def test_a_problem_has_the_title_of_its_status() -> None:
    assert ProblemError(HTTPStatus.NOT_FOUND, "no aggregate 'x'").body["title"] == "Not Found"


def test_short_events_share_a_message() -> None:
    assert queue_messages(['{"url":"/a"}', '{"url":"/b"}']) == ['[{"url":"/a"},{"url":"/b"}]']
