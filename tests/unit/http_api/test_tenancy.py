"""Tenancy: a caller reads and posts only what its claims say is its own, at every door."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from counters_lambda.handlers import api
from counters_lambda.http_api.requests import EventCheck, ProblemError, bound_values
from counters_lambda.http_api.resources import CountResources, openapi
from dynamodb_counters import Aggregate, Count, Event, Packed, Ranking, Ranks, Window
from simulation.handler_process import LAMBDA_CONTEXT
from tests.unit.http_api.handlers import Queue, call_api, call_ingest, counted, environment, receive, request

JOB = Event("job", pk="CUSTOMER#{customer}", sk="JOB#{id}")
HIT = Event("hit", pk="HIT#{customer}", sk="T#{at}#{id}", packed=Packed("at"))
TOP, ALL = (Ranking(measure="n", leaderboard=name) for name in ("TOP#{customer}", "ALL"))
DAILY = Aggregate("daily", JOB, pk="DAY#{customer}", sk="D#{day}", n=Count(), ranking=TOP)
MIXED = Aggregate("mixed", JOB, pk="MIXED#{day}", sk="C#{customer}", n=Count(), ranking=ALL)
RECENT = Window("recent", JOB, pk="RECENT#{customer}", time="at")
_SCORE: dict[str, Any] = {"score": "n", "least": 0, "most": 99}
BOARDS = [Ranks("one", MIXED, **_SCORE)._parts[0], Ranks("of_day", MIXED, by="day", **_SCORE)._parts[0]]
OWN = Ranks("own", DAILY, by="customer", **_SCORE)._parts[0]
SERVED: tuple[Any, ...] = (DAILY, MIXED, RECENT, JOB, HIT, *BOARDS, OWN)
TENANT = {"customer": "claims.sub"}
JSON = {"content-type": "application/json"}
Document = dict[str, Any]


def job(customer: object, number: int = 0) -> Document:
    return {"customer": customer, "id": str(number), "at": "2026-09-21T14:00:00Z", "day": "monday"}


def by(claim: Any, event: Document, kind: str = "jwt") -> Document:
    """Return a request with the claim ``sub``, where the authorizer of that kind has it."""
    claims = {"claims": {"sub": claim}} if kind == "jwt" else {"sub": claim}
    return event | {"requestContext": event["requestContext"] | {"authorizer": {kind: claims}}}


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    """Configure both APIs, over a table with jobs and hits of two customers."""
    events = [job(customer, number) for number in range(3) for customer in ("ann", "bob")]
    bench = counted((DAILY, MIXED, RECENT, *BOARDS, OWN), (JOB, events), (HIT, events))
    environment(monkeypatch, CountResources(bench.counters, SERVED))
    monkeypatch.setenv("CACHE_CONTROL", "private, max-age=5")
    return receive(monkeypatch, EventCheck(JOB), TENANT)


def get(claim: Any, path: str, **parameters: object) -> tuple[int, Any]:
    return call_api(by(claim, request("GET", path, urlencode(parameters))))


READS: dict[str, dict[str, str]] = {
    **{f"/v1/{name}": {} for name in ("daily", "daily/top", "recent", "recent/series", "job/events")},
    "/v1/mixed": {"day": "monday"},
    "/v1/hit/events": {"start": "2026-09-21T00:00:00Z", "end": "2026-09-22T00:00:00Z"},
}


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("path", READS)
def test_a_caller_reads_only_its_own(path: str) -> None:
    status, filled = get("ann", path, **READS[path])
    assert status == 200
    assert "ann" in json.dumps(filled)
    assert "bob" not in json.dumps(filled)
    assert get("ann", path, customer="ann", **READS[path]) == (200, filled)
    for customer in ("bob", "", "Ann"):
        status, problem = get("ann", path, customer=customer, **READS[path])
        message = "invalid customer: expected the value that the caller's claim holds"
        assert (status, problem["detail"]) == (403, message)


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("claim", [None, "", [], {}, True, ["ann"], "\ud800"])
def test_without_the_claim_nothing_is_read(path: str, claim: object) -> None:
    assert get(claim, path, customer="ann", **READS[path])[0] == 403
    assert call_api(request("GET", path))[0] == 403


@pytest.mark.usefixtures("queue")
def test_a_listing_that_mixes_tenants_is_refused() -> None:
    assert get("ann", "/v1/mixed/top")[0] == 403
    # A claim that names a member only limits no board.
    assert [get("ann", f"/v1/{name}", day="monday", rank=1)[0] for name in ("one", "of_day", "own")] == [403, 403, 400]
    assert get("ann", "/v1/own", rank=1)[1]["rank"] == 1
    assert get("ann", "/v1/daily", day="monday")[1]["values"] == {"customer": "ann", "day": "monday"}


@pytest.mark.usefixtures("queue")
def test_each_group_of_a_batch_is_the_callers_own() -> None:
    def batch(*values: Document) -> tuple[int, Any]:
        body = json.dumps({"groups": [{"aggregate": "daily", "values": fields} for fields in values]})
        return call_api(by("ann", request("POST", "/v1/batch", body=body, headers=JSON)))

    status, answer = batch({"day": "monday"}, {"day": "monday", "customer": "ann"})
    assert (status, [group["values"]["customer"] for group in answer["groups"]]) == (200, ["ann", "ann"])
    assert batch({"day": "monday"}, {"day": "monday", "customer": "bob"})[0] == 403
    assert batch({"day": "monday", "customer": None})[0] == 403


def test_every_event_that_is_posted_is_the_callers_own(queue: Queue) -> None:
    def post(claim: Any, *events: Any) -> tuple[int, Any]:
        return call_ingest(by(claim, request("POST", "/events", body=json.dumps(events), headers=JSON)))

    assert post("ann", job("ann"), job("ann", 1)) == (202, {"events": 2})
    assert post("7", job(7)) == (202, {"events": 1}), "the number 7 and the text '7' are one group"
    queue.messages.clear()
    without = {name: value for name, value in job("ann").items() if name != "customer"}
    status, problem = post("ann", job("ann"), job("bob"), without, job(None), job(["ann"]))
    assert (status, [error["index"] for error in problem["errors"]]) == (403, [1, 2, 3, 4])
    assert post(None, job("ann"))[0] == 403
    assert post("", job(""))[0] == 403
    assert post("ann", 5)[0] == 400
    assert queue.messages == []


@pytest.mark.parametrize(("path", "kind"), [("claims.sub", "jwt"), ("lambda.sub", "lambda"), ("iam.sub", "iam")])
def test_each_kind_of_authorizer_has_its_claims_in_its_place(path: str, kind: str) -> None:
    event = request("GET", "/")
    assert bound_values({"customer": path}, by("ann", event, kind)) == {"customer": "ann"}
    for other in {"jwt", "lambda", "iam"} - {kind}:
        with pytest.raises(ProblemError) as refused:
            bound_values({"customer": path}, by("ann", event, other))
        assert refused.value.status == 403
    dotted = by("ann", event, kind)
    [content] = dotted["requestContext"]["authorizer"].values()
    (content["claims"] if kind == "jwt" else content)["custom:team.id"] = "red"
    assert bound_values({"team": path.replace("sub", "custom:team.id")}, dotted) == {"team": "red"}


@pytest.mark.usefixtures("queue")
def test_a_cache_keeps_an_answer_for_its_caller_only() -> None:
    response = api.handler(by("ann", request("GET", "/v1/recent")), LAMBDA_CONTEXT)
    assert response["headers"]["Cache-Control"] == "private, max-age=5"
    assert response["headers"]["Vary"] == "Authorization"
    assert api.handler(request("GET", "/openapi.json"), LAMBDA_CONTEXT)["statusCode"] == 200


def test_the_document_leaves_out_what_the_claims_decide() -> None:
    paths = openapi(SERVED, TENANT)["paths"]
    for path, parameters in READS.items():
        names = {parameter["name"] for parameter in paths[path]["get"]["parameters"]}
        assert "customer" not in names
        assert parameters.keys() <= names
