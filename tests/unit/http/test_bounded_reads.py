"""Reads have bounds: pages, answers, windows, parameters; and a table that refuses is a problem of its own."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ConnectTimeoutError

from dynamodb_counters import Aggregate, Count, Counters, Ranking, Window
from dynamodb_counters._fold.page_layout import hash_of
from dynamodb_counters._http.resources import MAX_PAGE_BYTES, CountResources
from dynamodb_counters._reads.question import Position
from dynamodb_counters.handlers import api
from simulation.counters_in_memory import counters_in_memory
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.memory.client_errors import failure
from simulation.memory.memory_client import paginator
from tests.unit.http.handlers import NOW, VIEW, call_api, environment, get, pages, request
from tests.unit.http.handlers import counted as counted_table
from tests.unit.writes.clients import is_of_registry

CLIENTS = Aggregate(
    "clients",
    VIEW,
    pk="URL#{url}",
    sk="C#{clientId}",
    measures={"n": Count()},
    ranking=Ranking(measure="n", leaderboard="ALL"),
)
SPREAD = Aggregate("spread", VIEW, pk="SPREAD", sk="S", measures={"n": Count()}, write_shards=3)
FINE = Window("fine", VIEW, pk="F#{url}", time="time", precision=timedelta(seconds=1), longest=timedelta(minutes=1))
PLAIN = Window("plain", VIEW, pk="P#{url}", time="time")
PAGED = Aggregate("paged", VIEW, pk="PAGED#{url}", sk="{clientId}", measures={"n": Count()}, pages=True)
SERVED = (CLIENTS, PAGED, SPREAD, FINE, PLAIN)
Values = dict[str, Any]


def view(client: str, url: str = "/") -> Values:
    return {"url": url, "time": "2026-09-21T14:00:00Z", "clientId": client}


def counted(*views: Values) -> Any:
    return counted_table(SERVED, (VIEW, views)).table


def serve(monkeypatch: pytest.MonkeyPatch, client: Any) -> Counters:
    counters = Counters("counters", client=client, clock=lambda: NOW)
    counters._table = replace(counters._table, sleep=lambda _: None)
    environment(monkeypatch, CountResources(counters, (*SERVED, VIEW)))
    return counters


@pytest.mark.parametrize(
    ("name", "order"),
    [("clients", None), ("paged", lambda client: hash_of(PAGED._sk_template.render_texts([client])))],
)
def test_groups_come_page_by_page_in_the_order_of_their_keys_or_hashes(
    monkeypatch: pytest.MonkeyPatch, name: str, order: Any
) -> None:
    names = sorted([*(f"c{number}" for number in range(450)), "", "#", "é", "\x00", "x" * 1500], key=order)
    client = counted(*map(view, names), view("other", "/other"))
    serve(monkeypatch, client)
    assert sum(item["sk"]["S"].startswith("PAGE#paged#") for item in client.items()) > 1

    found = list(pages(f"/v1/{name}", "groups", url="/", limit=100))

    assert [len(page) for page in found] == [100, 100, 100, 100, 55]
    assert [group["values"]["clientId"] for page in found for group in page] == names
    assert {group["measures"]["n"] for page in found for group in page} == {1}


def test_a_page_of_groups_is_no_longer_than_a_megabyte(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, counted(*(view(f"{number}" + "\x01" * 7900) for number in range(130))))
    sizes = [len(json.dumps(page)) for page in pages("/v1/clients", "groups", url="/", limit=1000)]
    assert len(sizes) > 6
    assert max(sizes) < 1.1 * MAX_PAGE_BYTES


def test_a_leaderboard_and_a_batch_are_no_longer_than_a_megabyte(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = [f"{number}" + "é" * 3950 for number in range(100)]
    serve(monkeypatch, counted(*map(view, clients)))
    status, top = get("/v1/clients/top", limit=100)
    assert (status, len(json.dumps(top)) < 1.1 * MAX_PAGE_BYTES, 10 < len(top["groups"]) < 100) == (200, True, True)
    groups = [{"aggregate": "clients", "values": {"url": "/", "clientId": name}} for name in clients]
    body = json.dumps({"groups": groups}, ensure_ascii=False)
    status, problem = call_api(request("POST", "/v1/batch", body=body))
    assert (status, problem["detail"]) == (400, "the answer takes more than 1000000 bytes of JSON: request fewer")


def test_a_span_longer_than_declared_costs_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, counted(view("c")))
    year = {"start": "2025-09-21T00:00:00Z", "end": "2026-09-21T00:00:00Z"}
    for path in ("/v1/fine", "/v1/fine/series"):
        step = {"step": "2d"} if "series" in path else {}
        status, problem = get(path, url="/", **year, **step)
        assert (status, "read units': expected at most 650" in problem["detail"]) == (400, True)
    assert get("/v1/plain", url="/", last="366d")[0] == 200
    assert get("/v1/plain/series", url="/", last="366d", step="2d")[0] == 200


def test_a_later_page_reads_only_what_comes_after(monkeypatch: pytest.MonkeyPatch) -> None:
    client = counted(*(view(f"{number:04}") for number in range(300)))
    serve(monkeypatch, client)
    read, query = [0], client.query

    def noted(**wanted: Any) -> Any:
        page = query(**wanted)
        read[0] += len(page["Items"])
        return page

    monkeypatch.setattr(client, "query", noted)
    for path, key in (
        ("/v1/view/events", VIEW._sk_template.render(view("0290"))),
        ("/v1/clients", CLIENTS._sk_template.render(view("0290"))),
    ):
        read[0] = 0
        pk = "URL#/" if "events" in path else ""
        status, page = get(path, url="/", next=Position(0, pk, key).token)
        names = [(found.get("values") or found)["clientId"] for found in page.get("groups") or page["events"]]
        assert (status, names) == (200, [f"{number:04}" for number in range(291, 300)])
        assert read[0] <= 20  # Groups and events share the partition; each is passed over once at most.


@pytest.mark.parametrize(
    "token",
    [
        Position(0, "", "C").token,
        Position(0, "", "D#").token,
        Position(0, "", "C#" + "x" * 1100).token,
        "WzAsIiIsIlx1ZDgwMCJd",
        "x",
        "[" * 5000,
    ],
)
def test_a_made_up_token_is_refused(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    serve(monkeypatch, counted(view("c")))
    assert get("/v1/clients", url="/", next=token)[0] == 400


class Refusing:
    """A client whose reads are refused; without an error, all but the first one, of what the table counts."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def get_item(self, **asked: Any) -> dict[str, Any]:
        if self._error is None and is_of_registry(asked.get("Key")):
            return {}
        raise self._error or failure("GetItem", "ThrottlingException")

    query = get_item

    def get_paginator(self, _: str) -> Any:
        return paginator(self.query)

    def batch_get_item(self, **wanted: Any) -> dict[str, Any]:
        if self._error is not None:
            raise self._error
        return {"Responses": {}, "UnprocessedKeys": wanted["RequestItems"]}


@pytest.mark.parametrize(
    "error",
    [
        None,
        failure("Query", "ProvisionedThroughputExceededException"),
        ConnectTimeoutError(endpoint_url="https://dynamodb"),
        BotoCoreError(),
    ],
)
def test_a_table_that_refuses_reads_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception | None
) -> None:
    serve(monkeypatch, Refusing(error))
    requests = [
        request("GET", "/v1/clients", "url=/&clientId=c"),
        request("GET", "/v1/spread"),  # By BatchGetItem: TimeoutError after all tries.
        request("GET", "/v1/clients", "url=/"),
        request("GET", "/v1/clients/top"),  # In a pool of threads.
        request("GET", "/v1/plain", "url=/"),
        request("GET", "/v1/plain/series", "url=/"),
        request("GET", "/v1/view/events", "url=/"),
        request("POST", "/v1/batch", body='{"groups": [{"aggregate": "spread", "values": {}}]}'),
    ]
    for one in requests:
        response = api.handler(one, LAMBDA_CONTEXT)
        assert (response["statusCode"], response["headers"]["Retry-After"]) == (503, "1"), one["rawPath"]
    assert caplog.messages == ["the table refused a request"] * len(requests)


def test_a_read_ends_before_the_function_does(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = serve(monkeypatch, Refusing(None))
    counters._table = replace(counters._table, jitter=lambda: 1.0, sleep=time.sleep)
    short = type(LAMBDA_CONTEXT)(**{**vars(LAMBDA_CONTEXT), "get_remaining_time_in_millis": lambda: 700})
    began = time.perf_counter()
    response = api.handler(request("GET", "/v1/spread"), short)
    assert (response["statusCode"], response["headers"]["Retry-After"]) == (503, "1")
    assert time.perf_counter() - began < 3  # All tries take longer.


def test_a_declaration_that_the_table_does_not_count_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(CLIENTS, name="others", ranking=None)
    with counters_in_memory([other]) as counters:
        serve(monkeypatch, counters.client)
        asked = (
            ("clients", "url=/&clientId=c"),
            ("fine", "url=/"),
        )
        for path, query in asked:
            response = api.handler(request("GET", f"/v1/{path}", query), LAMBDA_CONTEXT)
            assert (response["statusCode"], response["headers"]["Retry-After"]) == (503, "1"), path
            assert "expected one that the table's aggregator counts" in response["body"]
