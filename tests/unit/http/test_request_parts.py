"""Parts of requests and answers by themselves: parameters, tokens of pages, problems, messages."""

from __future__ import annotations

from http import HTTPStatus

from dynamodb_counters._http.event_requests import queue_messages
from dynamodb_counters._http.requests import ProblemError
from dynamodb_counters._reads.question import Position


def test_a_token_names_the_position_it_was_made_of() -> None:
    assert Position.parse("next", Position(1, "URL#/", "T#1").token) == Position(1, "URL#/", "T#1")


def test_a_problem_has_the_title_of_its_status() -> None:
    assert ProblemError(HTTPStatus.NOT_FOUND, "no aggregate 'x'").body["title"] == "Not Found"


def test_short_events_share_a_message() -> None:
    assert queue_messages(['{"url":"/a"}', '{"url":"/b"}']) == ['[{"url":"/a"},{"url":"/b"}]']
