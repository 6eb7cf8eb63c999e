"""CloudEvents, structured and batched: what is queued of them, and what is refused by which words."""

from __future__ import annotations

import json
import re
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import pytest

from counters_lambda.http_api.json_schema import compile_schema
from counters_lambda.http_api.requests import EventCheck, parse_events
from dynamodb_counters import Attribute, Event
from tests.unit.http_api.handlers import Queue, call_ingest, counters_of, ranked_table, receive, request
from tests.unit.http_api.test_tenancy import by
from tests.unit.infra.support import PROJECT

Values = dict[str, Any]

CLICK = Event(
    "click",
    key=("source", "id"),
    attributes={
        "source": str,
        "id": str,
        "page": str,
        "time": datetime,
        "subject": Attribute(str, required=False),
        "sampledrate": Attribute(int, required=False),
        "test": Attribute(bool, required=False),
    },
)
ENVELOPE: Final[Values] = {
    "specversion": "1.0",
    "id": "a-1",
    "source": "/shops/1",
    "type": "com.example.click",
    "time": "2026-11-20T10:30:00Z",
    "subject": "Euro € 😀 100%",
    "sampledrate": 5,
    "test": True,
    "othercontext": "is not named",
    "data": {"page": "/a", "price": Decimal("0.10")},
}
_NAMED: Final = ("id", "source", "time", "subject", "sampledrate", "test")
TAKEN: Final = {"page": "/a", "price": 0.1} | {name: ENVELOPE[name] for name in _NAMED}
STRUCTURED, BATCHED = "application/cloudevents+json", "application/cloudevents-batch+json"


@pytest.fixture
def taking(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> Queue:
    return receive(monkeypatch, EventCheck(CLICK))


def queued(queue: Queue) -> list[Values]:
    return [values for message in queue.messages for values in json.loads(message)]


def post(content_type: str, document: Any, **headers: str) -> tuple[int, Any]:
    body = document if isinstance(document, str) else json.dumps(document, default=float)
    return call_ingest(request("POST", "/events", body=body, headers={"Content-Type": content_type, **headers}))


def without(*names: str, **changed: Any) -> Values:
    return {name: value for name, value in ENVELOPE.items() if name not in names} | changed


def test_an_event_is_the_same_in_every_mode(taking: Queue) -> None:
    assert post(STRUCTURED, ENVELOPE) == (202, {"events": 1})
    assert post(f"{STRUCTURED}; charset=UTF-8", ENVELOPE, **{"ce-id": "of no meaning here"})[0] == 202
    assert post(BATCHED, [ENVELOPE]) == (202, {"events": 1})
    assert queued(taking) == [TAKEN] * 3


def test_the_example_of_the_page_is_an_event(taking: Queue) -> None:
    page = (PROJECT / "docs" / "http.md").read_text()
    [(head, body)] = re.findall(r"```http\nPOST /events HTTP/1.1\n(.*?)\n\n(.*?)\n```", page, re.DOTALL)
    headers = dict(line.split(": ", 1) for line in head.splitlines())
    assert call_ingest(request("POST", "/events", body=body, headers=headers)) == (202, {"events": 1})
    event = {"page": "/", "id": "a-1", "source": "/shops/1", "time": "2026-11-20T10:30:00Z"}
    assert queued(taking) == [event]


def test_a_repeated_source_and_id_counts_once(taking: Queue) -> None:
    post(BATCHED, [ENVELOPE, without(source="/shops/2"), without(id="a-2"), ENVELOPE])
    post(STRUCTURED, ENVELOPE)
    outcomes = counters_of(ranked_table()).accept_many(CLICK, parse_events(json.dumps(queued(taking))))
    assert [outcome.status for outcome in outcomes] == ["accepted"] * 3 + ["duplicate"] * 2


def test_an_event_needs_no_data_where_its_context_is_enough(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    taking = receive(monkeypatch, EventCheck(Event("seen", key=("source", "id"), version="sequence")))
    envelope = without("data", sequence="7")
    assert post(STRUCTURED, envelope)[0] == 202
    assert queued(taking) == [{"source": "/shops/1", "id": "a-1", "sequence": "7"}]


WRONG: dict[str, tuple[Any, str]] = {
    "version": (without(specversion="0.3"), "invalid specversion='0.3': expected one of '1.0'"),
    "number as version": (without(specversion=1), "invalid specversion=1: expected one of '1.0'"),
    "no version": (without("specversion"), "invalid specversion=None: expected one of '1.0': it is required"),
    "no id": (without("id"), "invalid id=None: expected a string of at least 1 characters: it is required"),
    "null id": (without(id=None), "invalid id=None: "),
    "empty id": (without(id=""), "invalid id='': expected a string of at least 1 characters"),
    "number as id": (without(id=1), "invalid id=1: expected a string"),
    "no source": (without("source"), "invalid source=None: expected a string of at least 1 characters"),
    "a surrogate": (without(type="\ud800"), "invalid type='\\ud800': expected "),
    "no type": (without("type"), "invalid type=None: expected a string"),
    "no moment": (without(time="yesterday"), "invalid time='yesterday': expected an ISO 8601 time"),
    "no offset": (without(time="2026-11-20T10:30:00"), "invalid time="),
    "no such day": (without(time="2026-02-30T10:30:00Z"), "invalid time="),
    "base64": (without("data", data_base64="e30="), "invalid data_base64='e30=': expected none: 'data' is a JSON"),
    "text as data": (without(data="{}"), "invalid data='{}': expected a JSON object"),
    "list as data": (without(data=[{}]), "invalid data=[{}]: expected a JSON object"),
    "null as data": (without(data=None), "invalid data=None: expected a JSON object"),
    "another id in data": (without(data={"page": "/", "id": "b"}), "data.id='b': expected the CloudEvent's own"),
    "declared attribute": (without(data={}), "invalid page=None: expected a string: it is required"),
    "declared kind": (without(sampledrate="often"), "invalid sampledrate='often': expected a whole number"),
    "reserved name": (without(data={"page": "/", "ttl": 1}), "invalid values='ttl': expected attribute names"),
    "over 200,000 bytes": (without(data={"page": "/", "x": "x" * 200_000}), "expected at most 200000 bytes"),
    "no object": ([[ENVELOPE]], "expected a JSON object"),
    "text": ("x", "expected a JSON object"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_an_invalid_event_is_refused_by_what_is_wrong_with_all_of_its_batch(taking: Queue, kind: str) -> None:
    envelope, reason = WRONG[kind]
    good = [without(id=f"a-{number}") for number in range(3)]

    status, problem = post(STRUCTURED, json.dumps(envelope, default=float))
    assert (status, problem["detail"]) == (400, "1 of 1 events are refused; none was accepted")
    assert reason in problem["errors"][0]["detail"]

    status, problem = post(BATCHED, [good[0], envelope, *good[1:], envelope])
    assert (status, problem["detail"]) == (400, "2 of 5 events are refused; none was accepted")
    assert [error["index"] for error in problem["errors"]] == [1, 4]
    assert all(reason in error["detail"] for error in problem["errors"])
    assert queued(taking) == []


def test_events_of_a_batch_are_refused_for_any_reason_each(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    taking = receive(monkeypatch, EventCheck(CLICK), {"source": "claims.sub"})
    batch = [ENVELOPE, without(source="/shops/2"), without("id"), without(id="b")]
    event = request("POST", "/", body=json.dumps(batch, default=float), headers={"content-type": BATCHED})

    status, problem = call_ingest(by("/shops/1", event))

    assert (status, problem["detail"]) == (403, "2 of 4 events are refused; none was accepted")
    errors = [(error["index"], error["detail"][:20]) for error in problem["errors"]]
    assert errors == [(1, "invalid source: expe"), (2, "invalid id=None: exp")]
    assert queued(taking) == []


def test_a_batch_has_events_and_a_limit(taking: Queue) -> None:
    assert post(BATCHED, [])[1]["detail"] == "the array contains no events"
    assert post(BATCHED, [ENVELOPE] * 501)[0] == 413
    assert post(BATCHED, ENVELOPE) == post(STRUCTURED, [ENVELOPE]) == (202, {"events": 1})
    taking.messages.clear()
    assert post(BATCHED, "[")[0] == 400
    assert post(STRUCTURED, json.dumps(ENVELOPE, default=float) + " " * 10**6)[0] == 413
    assert queued(taking) == []


@pytest.mark.parametrize("content_type", ["application/cloudevents+avro", "application/cloudevents", "text/xml"])
def test_another_format_is_refused_with_those_there_are(taking: Queue, content_type: str) -> None:
    status, problem = post(content_type, ENVELOPE)
    assert status == 415
    assert f"expected application/json or text/plain or {STRUCTURED} or {BATCHED}" in problem["detail"]


@pytest.mark.parametrize("name", ["ce-specversion", "Ce-Subject", "ce-myextension"])
def test_a_cloud_event_in_headers_is_refused_with_the_way_that_there_is(taking: Queue, name: str) -> None:
    status, problem = post("application/json", {"page": "/", "source": "/", "id": "1"}, **{name: "1.0"})
    expected = f"expected a CloudEvent as the body, with the Content-Type {STRUCTURED}"
    assert (status, problem["detail"]) == (415, f"invalid header {name.lower()}: {expected}")
    assert queued(taking) == []


def test_an_attribute_may_be_in_context_and_data_if_both_say_the_same(taking: Queue) -> None:
    data = {"page": "/a", "id": "a-1", "sampledrate": 5, "type": "click"}
    assert post(STRUCTURED, without(data=data))[0] == 202
    assert queued(taking) == [{name: value for name, value in TAKEN.items() if name != "price"} | {"type": "click"}]


def test_a_schema_sees_the_event_that_is_counted(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"properties": {"source": {"pattern": "^/shops/"}, "price": {"multipleOf": 0.01}}, "required": ["page"]}
    receive(monkeypatch, EventCheck(CLICK, compile_schema(schema)))
    assert post(STRUCTURED, ENVELOPE)[0] == 202
    assert post(STRUCTURED, without(source="/other"))[0] == 400


def test_a_cloud_event_that_is_not_sent_as_one_is_refused(taking: Queue) -> None:
    for body in (ENVELOPE, [ENVELOPE]):
        status, problem = post("application/json", body)
        assert (status, "expected the Content-Type application/cloudevents+json" in str(problem)) == (400, True)
    assert queued(taking) == []


def test_a_plain_body_is_no_cloud_event(taking: Queue) -> None:
    plain = {"source": "/shops/1", "id": "1", "time": "2026-11-20T10:30:00Z", "page": "/", "data": {"page": "/b"}}
    for content_type in ("application/json", "text/plain"):
        assert post(content_type, plain) == (202, {"events": 1})
    assert post("application/json", [plain, {}])[1]["detail"] == "1 of 2 events are refused; none was accepted"
    assert post("application/json", [])[0] == 400
    assert queued(taking) == [plain] * 2
