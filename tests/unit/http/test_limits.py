"""Limits over HTTP: who may set which, what requests answer and document, and which are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Event, Sum, Threshold
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._http.json_schema import compile_schema
from dynamodb_counters._http.openapi import openapi
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters.handlers import api
from dynamodb_counters.testing import CountersInMemory, counters_in_memory
from dynamodb_counters.testing._dynamodb.client_errors import failure
from simulation.faults.hooked_client import failing
from simulation.handler_process import LAMBDA_CONTEXT
from tests.unit.http.handlers import call_api, environment, request

CALL = Event("call", key="id")
USAGE = Aggregate("usage", CALL, by=("customer", "at:month"), units=Sum("units"))
PAGED = Aggregate("paged", CALL, pk="PAGED", sk="C#{customer}", calls=Count(), pages=True)
SPREAD = Aggregate("spread", CALL, pk="SPREAD", sk="S", calls=Count(), write_shards=2)
ALL = Aggregate("all", CALL, calls=Count())
DECLARATIONS = (USAGE, PAGED, SPREAD, ALL)
LIMITED = ("usage", "paged", "all")
JSON = {"content-type": "application/json"}
NOVEMBER = {"customer": "c1", "at:month": "2026-11"}


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountersInMemory]:
    plan = Threshold("plan", USAGE, at=[1], of="limit", direction="both")
    with counters_in_memory([*DECLARATIONS, plan]) as counters:
        environment(monkeypatch, CountResources(counters, DECLARATIONS, counters.clock, LIMITED))
        monkeypatch.setenv("DECLARATIONS", encode(DECLARATIONS))
        monkeypatch.setenv("LIMITS", json.dumps(LIMITED))
        monkeypatch.delenv("EVENTS")
        yield counters


def put(name: str, body: object, **more: Any) -> tuple[int, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    return call_api(request("PUT", f"/v1/aggregates/{name}/limit", body=text, headers=JSON) | more)


def read(path: str, query: str = "") -> Any:
    status, found = call_api(request("GET", f"/v1/aggregates/{path}", query))
    assert status == 200, found
    return found


def test_a_limit_is_set_read_with_the_counts_and_taken_away(counters: CountersInMemory) -> None:
    counters.accept(CALL, {"id": "1", "customer": "c1", "at": "2026-11-20T00:00:00Z", "units": 7})
    group, query = {"aggregate": "usage", "values": NOVEMBER}, "customer=c1&at%3Amonth=2026-11"
    counted = {**group, "measures": {"units": 7}, "complete": True, "as_declared": True}
    assert read("usage", query) == counted
    assert put("usage", {"values": NOVEMBER, "limit": 10.5}) == (200, {**group, "limit": 10.5})
    assert read("usage", query) == {**counted, "limit": 10.5}
    batch = json.dumps({"groups": [{"aggregate": "usage", "values": NOVEMBER}]})
    answer = call_api(request("POST", "/v1/batch", body=batch, headers=JSON))
    assert answer == (200, {"groups": [{**counted, "limit": 10.5}]})
    assert put("usage", {"values": NOVEMBER, "limit": None}) == (200, {**group, "limit": None})
    assert read("usage", query) == counted


def test_a_group_in_a_page_and_one_without_fields_have_limits(counters: CountersInMemory) -> None:
    assert put("paged", {"values": {"customer": "c1"}, "limit": 3})[0] == 200
    assert put("all", {"limit": 4})[0] == 200
    counters.accept(CALL, {"id": "1", "customer": "c1", "at": "2026-11-20T00:00:00Z", "units": 1})
    counters.accept(CALL, {"id": "2", "customer": "c2", "at": "2026-11-20T00:00:00Z", "units": 1})
    limits = {group["values"]["customer"]: group.get("limit") for group in read("paged/groups")["groups"]}
    assert limits == {"c1": 3, "c2": None}
    assert (read("all")["limit"], read("all")["measures"]) == (4, {"calls": 2})
    assert "limit" not in read("spread")


def test_every_digit_of_a_limit_is_kept(counters: CountersInMemory) -> None:
    body = '{"limit": 12345678901234567890123456789012345.678}'
    assert put("all", body)[0] == 200
    answer = api.handler(request("GET", "/v1/aggregates/all"), LAMBDA_CONTEXT)
    assert '"limit":12345678901234567890123456789012345.678' in answer["body"]


@pytest.mark.parametrize(
    ("name", "body", "status", "detail"),
    [
        ("all", "[]", 400, "invalid body: expected an object with members limit, values"),
        ("all", {}, 400, "invalid body: expected an object with members limit, values"),
        ("all", {"limit": 1, "more": 1}, 400, "invalid body: expected an object with members limit, values"),
        ("all", {"limit": 0}, 400, "invalid limit=0: expected a number above 0, or None for no limit"),
        ("all", {"limit": -1}, 400, "invalid limit=-1: expected a number above 0"),
        ("all", '{"limit": -0.0}', 400, "invalid limit=-0.0: expected a number above 0"),
        ("all", {"limit": True}, 400, "invalid limit=True: expected an int or Decimal"),
        ("all", {"limit": "5"}, 400, "invalid limit='5': expected an int or Decimal"),
        ("all", {"limit": [5]}, 400, "invalid limit=[5]: expected an int or Decimal"),
        ("all", {"limit": {}}, 400, "invalid limit={}: expected an int or Decimal"),
        (
            "all",
            {"limit": 10**40 + 1},
            400,
            "invalid limit=10000000000000000000000000000000000000001: expected at",
        ),
        ("all", '{"limit": 1e126}', 400, "invalid limit=1E+126: expected a magnitude"),
        ("all", '{"limit": 1e-131}', 400, "invalid limit=1E-131: expected a magnitude"),
        ("all", '{"limit": 1e999}', 400, "the body is not valid JSON within the limits: 1e999 has too large"),
        ("all", '{"limit": NaN}', 400, "the body is not valid JSON within the limits: NaN is not a JSON number"),
        ("all", '{"limit": Infinity}', 400, "the body is not valid JSON within the limits: Infinity is"),
        ("all", '{"limit": 1, "limit": 2}', 400, "the body is not valid JSON within the limits: an object has a dup"),
        ("all", {"limit": 1, "values": {"customer": "c1"}}, 400, "invalid values: expected an object with no members"),
        ("all", {"limit": 1, "values": []}, 400, "invalid values: expected an object with no members"),
        ("usage", {"limit": 1}, 400, "invalid values: expected an object with members customer, at:month"),
        ("usage", {"limit": 1, "values": {**NOVEMBER, "customer": 1}}, 400, "invalid values: expected strings"),
        ("usage", {"limit": 1, "values": {**NOVEMBER, "customer": "\ud800"}}, 400, "invalid customer="),
        ("usage", {"limit": 1, "values": {**NOVEMBER, "at:month": "soon"}}, 400, "invalid at:month='soon'"),
        ("usage", {"limit": 1, "values": {**NOVEMBER, "customer": "x" * 9000}}, 400, "invalid values: expected at m"),
        ("spread", {"limit": 1}, 404, "no limits of 'spread' to set; available: usage, paged, all"),
        ("other", {"limit": 1}, 404, "no limits of 'other' to set; available: usage, paged, all"),
        ("all", '{"limit": ' + "9" * 1_000_000, 413, "the body has"),
    ],
)
def test_a_bad_request_is_a_problem_and_sets_nothing(
    name: str, body: object, status: int, detail: str, counters: CountersInMemory
) -> None:
    before = counters.client.scan(TableName=counters.table_name)["Items"]
    got, problem = put(name, body)
    assert (got, problem["detail"][: len(detail)]) == (status, detail)
    assert counters.client.scan(TableName=counters.table_name)["Items"] == before


def test_a_request_of_another_method_or_content_type_sets_nothing(counters: CountersInMemory) -> None:
    assert put("all", {"limit": 1}, headers={"content-type": "text/html"})[0] == 415
    for method in ("POST", "PATCH", "DELETE"):
        answer = request(method, "/v1/aggregates/all/limit", body='{"limit": 1}', headers=JSON)
        assert call_api(answer)[0] == 404
    assert counters.limit(ALL) is None


@pytest.mark.usefixtures("counters")
def test_an_api_that_declares_no_limits_sets_none(counters: CountersInMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "resources", lambda: CountResources(counters, DECLARATIONS, counters.clock))
    assert put("all", {"limit": 1})[1]["detail"] == "no limits of 'all' to set; available: none"
    monkeypatch.delenv("LIMITS")
    assert api._setting("LIMITS") == []
    assert "/v1/aggregates/all/limit" not in call_api(request("GET", "/openapi.json"))[1]["paths"]


def test_no_caller_sets_a_limit_of_another_tenant(counters: CountersInMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENANT", json.dumps({"customer": "claims.sub"}))
    caller = {"requestContext": {"http": {"method": "PUT"}, "authorizer": {"jwt": {"claims": {"sub": "c2"}}}}}
    assert put("usage", {"values": NOVEMBER, "limit": 1}, **caller)[0] == 403
    assert put("usage", {"values": NOVEMBER, "limit": 1})[0] == 403
    assert counters.limit(USAGE, NOVEMBER) is None


@pytest.mark.parametrize("code", ["ThrottlingException", "ConditionalCheckFailedException"])
def test_a_table_that_refuses_is_a_503_and_the_same_request_can_be_sent_again(
    code: str, counters: CountersInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing: Any = failing(counters._memory, "update_item", error=failure("UpdateItem", code))
    throttled = Counters(counters.table_name, client=refusing, clock=counters.clock)
    throttled._table.__dict__["sleep"] = lambda _: None
    with monkeypatch.context() as patch:
        patch.setattr(api, "resources", lambda: CountResources(throttled, DECLARATIONS, counters.clock, LIMITED))
        status, problem = put("all", {"limit": 5})
    assert (status, problem["detail"]) == (
        503,
        "the table cannot be reached now; retry, with the same id if there is one",
    )
    assert [put("all", {"limit": 5})[0] for _ in range(2)] == [200, 200]
    assert counters.limit(ALL) == 5


def test_an_aggregate_that_no_deployment_counts_yet_is_a_503_as_for_reads(
    counters: CountersInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters.accept(CALL, {"id": "1", "customer": "c1", "at": "2026-11-20T00:00:00Z", "units": 1})
    coming = Aggregate("coming", CALL, calls=Count())
    resources = CountResources(counters, (coming,), counters.clock, ("coming",))
    monkeypatch.setattr(api, "resources", lambda: resources)
    answers = [put("coming", {"limit": 1}), call_api(request("GET", "/v1/aggregates/coming"))]
    assert [(status, problem["detail"]) for status, problem in answers] == [
        (503, "the table cannot be reached now; retry, with the same id if there is one")
    ] * 2


@pytest.mark.usefixtures("counters")
def test_the_answer_is_not_cached() -> None:
    answer = api.handler(request("PUT", "/v1/aggregates/all/limit", body='{"limit": 1}', headers=JSON), LAMBDA_CONTEXT)
    assert answer["headers"]["Cache-Control"] == "no-store"


@pytest.mark.usefixtures("counters")
def test_the_document_says_what_is_set_and_answered() -> None:
    document = openapi(DECLARATIONS, limited=LIMITED)
    assert {path for path, one in document["paths"].items() if "put" in one} == {
        f"/v1/aggregates/{name}/limit" for name in LIMITED
    }
    assert call_api(request("GET", "/openapi.json"))[1] == document
    operation = document["paths"]["/v1/aggregates/usage/limit"]["put"]
    asked = _compiled(operation["requestBody"]["content"])
    body = {"values": NOVEMBER, "limit": 5}
    assert asked(body) is None
    for wrong in ({"values": NOVEMBER}, {"limit": 5}, {**body, "limit": "5"}, {**body, "more": 1}):
        assert asked(wrong) is not None
    for name, posted in (("usage", body), ("all", {"limit": 5})):
        answers = document["paths"][f"/v1/aggregates/{name}/limit"]["put"]["responses"]
        assert {*answers} == {"200", "400", "404", "413", "415", "503"}
        answered = _compiled(answers["200"]["content"])
        assert answered(put(name, posted)[1]) is None
    group = document["paths"]["/v1/aggregates/usage"]["get"]["responses"]["200"]["content"]
    found = read("usage", "customer=c1&at%3Amonth=2026-11")
    assert (_compiled(group)(found), {*group["application/json"]["schema"]["properties"]}) == (None, {*found})


def _compiled(content: Any) -> Any:
    """The check of a document that has no null: test_contract.py makes requests with some."""
    return compile_schema(
        json.loads(json.dumps(content["application/json"]["schema"]).replace('"nullable"', '"title"'))
    )
