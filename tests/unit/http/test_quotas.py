"""Quotas over HTTP: what requests answer, cost and document, and which are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from dynamodb_counters import Leases, Quota
from dynamodb_counters._declarations.codec import decode, encode
from dynamodb_counters._http.json_schema import compile_schema
from dynamodb_counters._http.openapi import openapi
from dynamodb_counters._http.quota_resources import QuotaResources
from dynamodb_counters._table import Table
from dynamodb_counters.handlers import api
from dynamodb_counters.testing._dynamodb.client_errors import failure
from simulation.clock import VirtualClock
from simulation.faults.hooked_client import Hook, HookedClient, failing
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.metered_table import MeteredTable
from tests.unit.http.handlers import call_api, environment, request

CALLS = Quota("calls", limit=10, per="day", by="customer", tz="Europe/Berlin")
ALL = Quota("all", limit=5, per=timedelta(minutes=1), portion=2, clock_error=timedelta(seconds=20))
JSON = {"content-type": "application/json"}
C1 = {"customer": "c1"}
EPOCH = VirtualClock().now
RESETS_AT = "2026-11-20T23:00:00+00:00"


class Service:
    """Sends requests to the API, over a table in memory."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.clock = VirtualClock()
        self.memory = MeteredTable(self.clock)
        self._patch = patch
        environment(patch)
        patch.setenv("QUOTAS", encode((CALLS, ALL)))
        self.reach(lambda _, send, __: send())

    def reach(self, hook: Hook) -> None:
        self.through(HookedClient(self.memory, hook))

    def through(self, client: Any) -> None:
        """Let the function reach the table by another client."""
        self.table = Table(self.memory.name, client, clock=self.clock, sleep=self.clock.advance)
        self._patch.setattr(api, "quotas", lambda: QuotaResources(self.table, (CALLS, ALL)))

    def post(self, path: str, body: object = None, **more: Any) -> tuple[int, Any]:
        text = body if isinstance(body, str) else json.dumps(body or {"values": C1})
        return call_api(request("POST", f"/v1/quotas/{path}", body=text, headers=JSON) | more)

    def take(self, **members: Any) -> tuple[int, Any]:
        return self.post("calls/take", {"values": C1, **members})

    def give_back(self, lease: str, **members: Any) -> tuple[int, Any]:
        return self.post("calls/give-back", {"values": C1, "lease": lease, **members})

    def left(self) -> int:
        status, state = call_api(request("GET", "/v1/quotas/calls", "customer=c1"))
        assert status == 200, state
        return int(state["left"])


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    return Service(monkeypatch)


def test_calls_are_taken_and_given_back_and_the_state_shows_it(service: Service) -> None:
    group = {"quota": "calls", "values": C1}
    state = {"limit": 10, "reserved": 3, "left": 7, "resets_at": RESETS_AT}
    assert service.take(n=3, id="r1") == (200, {**group, "lease": "r1", "granted": True, **state})
    assert call_api(request("GET", "/v1/quotas/calls", "customer=c1")) == (200, {**group, **state})
    state |= {"reserved": 1, "left": 9}
    assert service.give_back("r1", n=2) == (200, {**group, "lease": "r1", "given_back": 2, **state})


def test_call_10_of_at_most_10_is_granted_and_call_11_is_not(service: Service) -> None:
    assert [service.take(n=n)[1]["granted"] for n in (11, 9, 2, 1, 1)] == [False, True, False, True, False]
    assert service.post("calls/take", {"values": {"customer": "c2"}})[1]["granted"]


def test_the_same_id_takes_once_and_gives_back_once(service: Service) -> None:
    assert [service.take(n=10, id="a")[1]["granted"] for _ in range(3)] == [True] * 3
    assert [service.give_back("a", n=4)[1]["given_back"] for _ in range(3)] == [4] * 3
    assert service.left() == 4


def test_a_service_that_sends_no_id_gets_one(service: Service) -> None:
    leases = [service.take()[1]["lease"] for _ in range(2)]
    assert [service.give_back(lease)[0] for lease in leases] == [200, 200]
    assert (len({*leases}), service.left()) == (2, 10)


def test_a_lease_that_is_asked_to_become_another_is_a_conflict(service: Service) -> None:
    service.take(n=3, id="a")
    assert service.take(n=2, id="a") == (409, _problem("the lease 'a' took 3 calls: send another id"))
    assert service.give_back("a", n=4)[0] == 409
    service.give_back("a", n=1)
    returned = _problem("the lease 'a' took 3 calls and gave 1 back: send another id")
    # Its caller might make the calls again, if it were granted.
    assert service.take(n=3, id="a") == (409, returned)
    assert service.give_back("a") == (409, returned)
    assert service.left() == 8


def _problem(detail: str) -> dict[str, Any]:
    return {"type": "about:blank", "title": "Conflict", "status": 409, "detail": detail}


def test_an_id_is_good_for_one_period(service: Service) -> None:
    service.take(n=10, id="a")
    service.clock.advance(86_400)
    assert service.give_back("a")[0] == 404
    assert service.take(n=10, id="a")[1]["granted"]


def test_near_its_end_a_call_counts_in_both_periods(service: Service) -> None:
    service.clock.now = ALL._period(service.clock.now).end - 19
    assert service.post("all/take", {"n": 3, "id": "a"})[1]["granted"]
    service.clock.advance(30)
    assert service.post("all/take", {"n": 3})[1]["granted"] is False
    assert service.post("all/give-back", {"lease": "a"})[1]["left"] == 5


def test_a_request_that_is_over_when_its_period_is_takes_from_the_next(service: Service) -> None:
    def slow(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        answer = send()
        if name == "transact_write_items":
            service.clock.now = max(service.clock.now, CALLS._period(EPOCH).end + 60)
        return answer

    service.reach(slow)
    assert service.take(id="a")[1]["granted"]
    assert service.left() == 9


def test_processes_and_requests_share_what_is_reserved(service: Service) -> None:
    leases = Leases(service.table, CALLS, C1)
    assert leases.take(6)
    assert service.take(n=5)[1]["granted"] is False
    assert service.take(n=4)[1]["granted"]
    assert not leases.take()


def test_an_answer_that_is_lost_costs_no_call(service: Service) -> None:
    lost = ["transact_write_items"]

    def lose(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
        answer = send()
        if name in lost:
            lost.remove(name)
            raise ReadTimeoutError(endpoint_url="http://table")
        return answer

    service.reach(lose)
    assert service.take(n=4, id="a")[1]["granted"]
    lost.append("transact_write_items")
    assert service.give_back("a")[1]["given_back"] == 4
    assert service.left() == 10


def test_a_grant_costs_4_write_units_and_3_read_units_and_a_refusal_3_read_units(service: Service) -> None:
    for act, writes, reads in (
        (lambda: service.take(n=10, id="a"), 4, 3),
        (lambda: service.take(id="b"), 0, 3),
        (lambda: service.take(n=10, id="a"), 0, 3),
        (lambda: service.give_back("a"), 4, 2),
        (service.left, 0, 1),
    ):
        usage = service.memory.usage
        before = usage.writes, usage.reads
        act()
        assert (usage.writes - before[0], usage.reads - before[1]) == (writes, reads)


def test_leases_expire_a_day_after_their_period(service: Service) -> None:
    service.take(id="a")
    assert {item["ttl"]["N"] for item in service.memory.items()} == {str(CALLS._period(EPOCH).end + 86_400)}


@pytest.mark.parametrize(
    ("path", "body", "status", "detail"),
    [
        ("calls/take", "[]", 400, "invalid body: expected an object with members id, n, values"),
        ("calls/take", {"values": C1, "lease": "a"}, 400, "invalid body: expected an object with members id, n, v"),
        ("calls/take", {"n": 1}, 400, "invalid values: expected an object with members customer"),
        ("calls/take", {"values": []}, 400, "invalid values: expected an object with members customer"),
        ("calls/take", {"values": {"customer": 1}}, 400, "invalid values: expected strings"),
        ("calls/take", {"values": {"customer": "\ud800"}}, 400, "invalid customer="),
        ("calls/take", {"values": C1, "n": 0}, 400, "invalid n=0: expected an int from 1 to"),
        ("calls/take", {"values": C1, "n": 1.5}, 400, "invalid n=1.5: expected an int"),
        ("calls/take", {"values": C1, "n": True}, 400, "invalid n=True: expected an int"),
        ("calls/take", {"values": C1, "n": None}, 400, "invalid n=None: expected an int"),
        ("calls/take", {"values": C1, "id": "a#b"}, 400, "invalid id='a#b': expected 1 to 64 letters"),
        ("calls/take", {"values": C1, "id": None}, 400, "invalid id=None: expected 1 to 64 letters"),
        ("calls/give-back", {"values": C1}, 400, "invalid lease=None: expected 1 to 64 letters"),
        ("calls/give-back", {"values": C1, "lease": "a", "n": -1}, 400, "invalid n=-1: expected an int"),
        ("calls/give-back", {"values": C1, "lease": "a"}, 404, "no lease 'a' in this period"),
        ("other/take", {}, 404, "no quota 'other'; available: calls, all"),
        ("calls/take", "{", 400, "the body is not valid JSON"),
        ("calls/take", '"' + "x" * 1_000_000 + '"', 413, "the body has 1000002 bytes"),
    ],
)
def test_a_bad_request_is_a_problem_and_changes_nothing(
    path: str, body: object, status: int, detail: str, service: Service
) -> None:
    got, problem = service.post(path, body)
    assert (got, problem["detail"][: len(detail)]) == (status, detail)
    assert [*service.memory.items()] == []


def test_another_content_type_is_a_problem(service: Service) -> None:
    assert service.post("calls/take", headers={"content-type": "text/html"})[0] == 415


@pytest.mark.parametrize(
    "error", [failure("TransactWriteItems", "ThrottlingException"), failure("TransactWriteItems", "AccessDenied")]
)
def test_a_table_that_refuses_is_a_503_that_says_how_to_retry(error: Exception, service: Service) -> None:
    service.through(failing(service.memory, "transact_write_items", error=error))
    status, problem = service.take(id="a")
    assert (status, problem["detail"]) == (
        503,
        "the table cannot be reached now; retry, with the same id if there is one",
    )
    service.reach(lambda _, send, __: send())
    assert service.take(id="a")[1]["granted"]
    service.through(failing(service.memory, "transact_write_items", error=error))
    assert service.give_back("a")[0] == 503


@pytest.mark.usefixtures("service")
def test_answers_are_not_cached() -> None:
    for event in (
        request("GET", "/v1/quotas/calls", "customer=c1"),
        request("POST", "/v1/quotas/calls/take", body=json.dumps({"values": C1}), headers=JSON),
    ):
        assert api.handler(event, LAMBDA_CONTEXT)["headers"]["Cache-Control"] == "no-store"


def test_a_caller_takes_only_its_own(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENANT", json.dumps({"customer": "claims.sub"}))
    context = {"http": {"method": "POST"}, "authorizer": {"jwt": {"claims": {"sub": "c1"}}}}
    own = {"requestContext": context}
    assert service.post("calls/take", {"id": "a"}, **own)[1]["values"] == C1
    assert service.post("calls/give-back", {"values": C1, "lease": "a"}, **own)[0] == 200
    for path in ("calls/take", "calls/give-back"):
        assert service.post(path, {"values": {"customer": "c2"}}, **own)[0] == 403
        assert service.post(path, {"values": C1})[0] == 403
    get = request("GET", "/v1/quotas/calls", "customer=c2")
    assert call_api(get | {"requestContext": {**context, "http": {"method": "GET"}}})[0] == 403


def test_the_document_says_what_is_taken_and_answered(service: Service) -> None:
    document = openapi((), {"customer": "claims.sub"}, (CALLS, ALL))
    paths = document["paths"]
    assert {*paths} == {
        "/openapi.json",
        *(f"/v1/quotas/{name}{end}" for name in ("calls", "all") for end in ("", "/take", "/give-back")),
    }
    assert '"required": []' not in json.dumps(document)
    schema = paths["/v1/quotas/calls"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    _, state = call_api(request("GET", "/v1/quotas/calls", "customer=c1"))
    assert (compile_schema(schema)(state), {*schema["properties"]}) == (None, {*state})
    for path, body in (("take", {"values": C1, "id": "a", "n": 2}), ("give-back", {"values": C1, "lease": "a"})):
        operation = paths[f"/v1/quotas/calls/{path}"]["post"]
        asked = operation["requestBody"]["content"]["application/json"]["schema"]
        assert compile_schema(asked)(body) is None
        for wrong in ({"values": C1, "more": 1}, {**body, "n": 0}, {**body, "values": {"customer": 1}}):
            assert compile_schema(asked)(wrong) is not None
        status, answer = service.post(f"calls/{path}", body)
        assert status == 200
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        assert (compile_schema(schema)(answer), {*schema["properties"]}) == (None, {*answer})
        assert {*operation["responses"]} == {"200", "400", "403", "404", "409", "413", "415", "503"}
    status, document = call_api(request("GET", "/openapi.json"))
    assert "/v1/quotas/calls/take" in document["paths"]


@pytest.mark.parametrize("quota", [CALLS, ALL, replace(CALLS, tz="UTC", by=())])
def test_a_quota_is_the_same_in_the_environment(quota: Quota) -> None:
    restored: Any = decode(encode((quota,)))
    assert restored == (quota,)
