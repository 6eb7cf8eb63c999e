"""Answers that HTTP alone gives, as counts computed here from the events say, and their bounds; refusals say why."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ConnectTimeoutError

from counters_lambda.handlers import api
from counters_lambda.http_api.resources import MAX_PAGE_BYTES, CountResources
from dynamodb_counters import Aggregate, Count, Counters, Ranking, Window
from dynamodb_counters._fold.layouts import hash_of
from dynamodb_counters._reads.question import Position
from dynamodb_counters._tiers import DAY, utc
from simulation.counters_in_memory import counters_in_memory
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.memory.client_errors import failure
from simulation.memory.memory_client import paginator
from tests.unit.http_api.handlers import (
    NOW,
    OWN,
    URLS,
    VIEW,
    call_api,
    environment,
    get,
    pages,
    refusal,
    request,
    views,
)
from tests.unit.http_api.handlers import counted as counted_table
from tests.unit.writes.clients import is_of_registry

VIEWS = views()
SEPTEMBER = {"start": "2026-09-01T00:00:00Z", "end": "2026-10-01T00:00:00Z"}
BERLIN = {"start": "2026-09-01T00:00:00+02:00", "end": "2026-10-01T00:00:00+02:00"}


@pytest.fixture(autouse=True)
def _resources(counted: CountResources, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch, counted)


def read(path: str, **parameters: object) -> Any:
    status, document = get(f"/v1/{path}", **parameters)
    assert status == 200, document
    return document


def test_a_batch() -> None:
    groups: list[Any] = [{"aggregate": "views", "values": {"url": url}} for url in URLS]
    body = json.dumps({"groups": [*groups, {"aggregate": "site", "values": {}}]})
    status, document = call_api(request("POST", "/v1/batch", body=body, headers={"content-type": "application/json"}))
    sizes = {url: sum(view["bytes"] for view in VIEWS if view["url"] == url) for url in URLS}
    expected: list[Any] = [
        {"views": times, "bytes": sizes[url], "mean": pytest.approx(sizes[url] / times)} for url, times in URLS.items()
    ]
    assert status == 200
    assert [group["measures"] for group in document["groups"]] == [*expected, {"site_views": len(VIEWS)}]


@pytest.mark.parametrize(
    ("groups", "status", "words"),
    [
        ([], 400, "invalid body: expected an object with 'groups', an array of 1 to 100"),
        ([{"aggregate": "site", "values": {}}] * 101, 400, "invalid body: expected an object with 'groups'"),
        ([{"aggregate": "site", "values": {}}, 5], 400, "invalid groups[1]: expected an object with 'aggregate'"),
        ([{"aggregate": "site", "values": {}, "last": "7d"}], 400, "invalid groups[0]: expected"),
        ([{"aggregate": "small", "values": {"url": "/"}}], 400, "invalid clientId=None: expected a value"),
        ([{"aggregate": "views", "values": {"url": None}}], 400, "invalid url=None: expected"),
        ([{"aggregate": "views", "values": {"url": "/", "x": "y"}}], 400, "invalid x='y': expected a field"),
        ([{"aggregate": "rolling", "values": {"url": "/"}}], 404, "no counts 'rolling'; available: views, site"),
        ([{"aggregate": OWN[1].name, "values": {"url": "/"}}], 404, "no counts"),
    ],
)
def test_a_batch_is_of_whole_groups_of_aggregates(groups: list[Any], status: int, words: str) -> None:
    answered, problem = call_api(request("POST", "/v1/batch", body=json.dumps({"groups": groups})))
    assert (answered, problem["detail"][: len(words)]) == (status, words)


def test_a_span_has_the_defaults_of_all_doors() -> None:
    answer = read("kept", last="24h", end="2026-09-10T00:00:00Z")
    assert (answer["start"], answer["end"]) == ("2026-09-09T00:00:00+00:00", "2026-09-10T00:00:00+00:00")
    assert read("kept", end="2026-09-10T00:00:00Z") == answer
    assert read("kept") == read("kept", last="24h")
    assert read("kept", start=read("kept")["start"])["count"] == read("kept")["count"]


def test_a_month_in_a_time_zone_is_one_read() -> None:
    answer = read("kept", **BERLIN)
    assert (answer["start"], answer["end"]) == ("2026-08-31T22:00:00+00:00", "2026-09-30T22:00:00+00:00")
    [month] = read("kept/series", **BERLIN, step="month", tz="Europe/Berlin")["series"]
    assert {"window": "kept", "values": {}, **month} == answer
    assert (answer["count"], answer["complete"]) == (len(VIEWS), True)


@pytest.mark.parametrize("name", [declaration.name for declaration in OWN])
def test_parts_of_other_measures_are_no_plain_groups(name: str) -> None:
    assert refusal(f"/v1/{name}/top", 404, url="/") == f"no top {name!r}; available: views"
    asked: Any = {"largest": {}, "board": {"url": "/", "rank": 1}}.get(name, {"url": "/"})
    assert "measures" not in read(name, **asked)


def test_a_member_a_score_and_a_rank_are_answered_alike() -> None:
    scores = {
        client: sum((view["url"], view["clientId"]) == ("/", client) for view in VIEWS) for client in ("c0", "c1")
    }
    assert scores == {"c0": 12, "c1": 11}
    shown = {"ranks": "board", "of": 2, "ties": 1, "as_of": utc(NOW).isoformat(), "complete": True}
    for rank, (client, score) in enumerate(scores.items(), 1):
        for asked in ({"clientId": client}, {"score": score}, {"rank": rank}, {"rank": 3 - rank, "order": "smallest"}):
            named = {"url": "/"} | ({"clientId": client} if "clientId" in asked else {})
            place = 3 - rank if "order" in asked else rank
            assert read("board", url="/", **asked) == {**shown, "values": named, "rank": place, "score": score}
    nobody = {**shown, "values": {"url": "/", "clientId": "c9"}, "ties": 0}
    assert read("board", url="/", clientId="c9") == nobody
    del shown["ties"]
    for low, high, count in ((0, 99, 2), (12, 12, 1), (0, 10, 0)):
        assert read("board", url="/", low=low, high=high) == {**shown, "values": {"url": "/"}, "count": count}


def test_only_what_counts_by_time_has_a_series() -> None:
    days = {"start": utc(NOW - 2 * DAY).isoformat(), "end": utc(NOW).isoformat()}
    assert [day["count"] for day in read("clients/series", url="/", rolling="2d", **days)["series"]] == [0, 2, 2]
    assert refusal("/v1/latest/series", 404, url="/") == "no series 'latest'; available: rolling, kept, clients, hourly"


@pytest.mark.parametrize(
    ("path", "parameters", "message"),
    [
        ("sizes", {"p": "1.1"}, "invalid p='1.1': expected up to 20 numbers from 0 to 1"),
        ("sizes", {"p": ",".join(["0.5"] * 21)}, "invalid p="),
        ("hourly", {"last": "366d"}, "invalid span='about 4392 read units': expected at most 650"),
        ("rolling", {"last": "1h", **SEPTEMBER}, "invalid last='1h': expected one span of time, not 'start' as well"),
        ("rolling", {"as_of": SEPTEMBER["end"], **SEPTEMBER}, "expected one span of time, not 'start' as well"),
        ("rolling", {"as_of": BERLIN["end"], "end": BERLIN["end"]}, "expected one span of time, not 'end' as well"),
        ("rolling", {"last": "0h"}, "invalid last='0h': expected a number and a unit such as 30s"),
        *(
            ("board", {name: text}, f"invalid {name}={text!r}: expected a number such as 1200 or -0.5")
            for name, text in (("score", "1e9"), ("low", "٣"), ("high", "NaN"), ("score", "1."), ("score", ""))
        ),
        (
            "board",
            {"score": "100"},
            "invalid score=100: expected an int or Decimal from 0 to 99 with at most 0 decimal",
        ),
        ("board", {"rank": "0"}, "invalid rank='0': expected an int from 1 to 999999999"),
        *(
            ("board", asked, "invalid ranks='board': expected one of: fields of a member, score, rank, or low and high")
            for asked in (
                {},
                *({"low": "1"}, {"high": "1"}, {"low": "1", "high": "2", "order": "smallest"}),
                *({"rank": "1", "score": "1"}, {"rank": "1", "clientId": "c0"}),
            )
        ),
        *(
            (path, {"as_of": moment, **more}, f"as_of={moment!r}: expected")
            for path, more in (("rolling", {}), ("rolling/series", {"step": "1h"}))
            for moment in ("1969-12-31T23:59:59Z", "9999-01-01T00:00:00Z", "2026-09-21T14:13:20", "now", "")
        ),
    ],
)
def test_a_parameter_out_of_its_bounds_is_refused(path: str, parameters: dict[str, str], message: str) -> None:
    assert message in refusal(f"/v1/{path}", url="/", **parameters)


@pytest.mark.parametrize("query", ["url=%ff", "&".join(["url=/"] * 101)])
def test_a_query_that_is_no_text_or_has_too_many_parts_is_refused(query: str) -> None:
    status, problem = call_api(request("GET", "/v1/rolling", query))
    assert (status, problem["detail"]) == (400, "invalid query string: expected UTF-8 with at most 100 parameters")


_RANKING = Ranking(measure="n", leaderboard="ALL")
CLIENTS = Aggregate("clients", VIEW, pk="URL#{url}", sk="C#{clientId}", n=Count(), ranking=_RANKING)
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
    ("name", "order"), [("clients", None), ("paged", lambda client: hash_of(PAGED._sk_template.render_texts([client])))]
)
def test_groups_come_page_by_page_in_the_order_of_their_keys_or_hashes(
    monkeypatch: pytest.MonkeyPatch, name: str, order: Any
) -> None:
    names = sorted([*(f"c{number}" for number in range(450)), "", "#", "é", "\x00", "x" * 1500], key=order)
    client = counted(*map(view, names), view("other", "/other"))
    serve(monkeypatch, client)
    assert sum(item["sk"]["S"].startswith("PAGE#paged#") for item in client.items()) > 1

    listing = list(pages(f"/v1/{name}", "groups", url="/", limit=100))

    assert [len(page) for page in listing] == [100, 100, 100, 100, 55]
    assert [group["values"]["clientId"] for page in listing for group in page] == names
    assert {group["measures"]["n"] for page in listing for group in page} == {1}


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

    def noted(**arguments: Any) -> Any:
        page = query(**arguments)
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
        names = [(entry.get("values") or entry)["clientId"] for entry in page.get("groups") or page["events"]]
        assert (status, names) == (200, [f"{number:04}" for number in range(291, 300)])
        assert read[0] <= 20  # Groups and events share the partition; each is passed over once at most.


STRAYS = [Position(0, "", key).token for key in ("C", "D#", "C#" + "x" * 1100)]


@pytest.mark.parametrize("token", [*STRAYS, "WzAsIiIsIlx1ZDgwMCJd", "x", "[" * 5000])
def test_a_made_up_token_is_refused(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    serve(monkeypatch, counted(view("c")))
    assert get("/v1/clients", url="/", next=token)[0] == 400


class Refusing:
    """A client whose reads are refused; without an error, all but the first one, of what the table counts."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def get_item(self, **arguments: Any) -> dict[str, Any]:
        if self._error is None and is_of_registry(arguments.get("Key")):
            return {}
        raise self._error or failure("GetItem", "ThrottlingException")

    query = get_item

    def get_paginator(self, _: str) -> Any:
        return paginator(self.query)

    def batch_get_item(self, **arguments: Any) -> dict[str, Any]:
        if self._error is not None:
            raise self._error
        return {"Responses": {}, "UnprocessedKeys": arguments["RequestItems"]}


THROTTLED = failure("Query", "ProvisionedThroughputExceededException")


@pytest.mark.parametrize("error", [None, THROTTLED, ConnectTimeoutError(endpoint_url="https://x"), BotoCoreError()])
def test_a_table_that_refuses_reads_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception | None
) -> None:
    serve(monkeypatch, Refusing(error))
    requests = [request("GET", f"/v1/{name}", "url=/") for name in ("clients", "plain", "plain/series", "view/events")]
    requests += [
        request("GET", "/v1/clients", "url=/&clientId=c"),
        request("GET", "/v1/spread"),  # By BatchGetItem: TimeoutError after all tries.
        request("GET", "/v1/clients/top"),  # In a pool of threads.
        request("POST", "/v1/batch", body='{"groups": [{"aggregate": "spread", "values": {}}]}'),
    ]
    for event in requests:
        response = api.handler(event, LAMBDA_CONTEXT)
        assert (response["statusCode"], response["headers"]["Retry-After"]) == (503, "1"), event["rawPath"]
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
        for path, query in (("clients", "url=/&clientId=c"), ("fine", "url=/")):
            response = api.handler(request("GET", f"/v1/{path}", query), LAMBDA_CONTEXT)
            assert (response["statusCode"], response["headers"]["Retry-After"]) == (503, "1"), path
            assert "expected one that the table's aggregator counts" in response["body"]
