"""The counter API's responses match counts computed here from the events alone; each refusal names its cause."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from dynamodb_counters._http.event_requests import EventCheck, parse_events, queue_messages
from dynamodb_counters._http.requests import ProblemError
from dynamodb_counters._http.resources import CountResources
from tests.unit.http.counted import URLS, views
from tests.unit.http.handlers import HIT, NOW, SIZES, VIEW, call_api, call_ingest, environment, request

VIEWS = views()
JSON = {"content-type": "application/json"}


@pytest.fixture(autouse=True)
def _resources(counted: CountResources, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch, counted)


def get(path: str, **parameters: str) -> Any:
    status, document = call_api(request("GET", path, urlencode(parameters)))
    assert status == 200, document
    return document


WHOLE = {"complete": True}


def measures(url: str) -> dict[str, Any]:
    size = sum(view["bytes"] for view in VIEWS if view["url"] == url)
    return {"views": URLS[url], "bytes": size, "mean": pytest.approx(size / URLS[url])}


@pytest.mark.parametrize("url", URLS)
def test_a_group(url: str) -> None:
    assert get("/v1/views", url=url) == {
        "aggregate": "views",
        "values": {"url": url},
        "measures": measures(url),
        **WHOLE,
    }


def test_a_batch() -> None:
    groups: list[Any] = [{"aggregate": "views", "values": {"url": url}} for url in URLS]
    body = json.dumps({"groups": [*groups, {"aggregate": "site", "values": {}}]})
    status, document = call_api(request("POST", "/v1/batch", body=body, headers={"content-type": "application/json"}))
    assert status == 200
    assert [group["measures"] for group in document["groups"]] == [*map(measures, URLS), {"site_views": len(VIEWS)}]


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
        ([{"aggregate": SIZES._parts[-1].name, "values": {"url": "/"}}], 404, "no counts"),
    ],
)
def test_a_batch_is_of_whole_groups_of_aggregates(groups: list[Any], status: int, words: str) -> None:
    answered, problem = call_api(request("POST", "/v1/batch", body=json.dumps({"groups": groups})))
    assert (answered, problem["detail"][: len(words)]) == (status, words)


def test_groups_of_a_partition_key() -> None:
    groups = get("/v1/small", url="/")["groups"]
    by_client = {group["values"]["clientId"]: group["measures"]["n"] for group in groups}
    clients = [view["clientId"] for view in VIEWS if view["url"] == "/"]
    assert by_client == {client: clients.count(client) for client in ("c0", "c1")}


def test_a_leaderboard() -> None:
    first = sorted(URLS, key=lambda url: -URLS[url])[:2]
    group, top = {"aggregate": "views", **WHOLE}, get("/v1/views/top", limit="2")["groups"]
    assert top == [{**group, "values": {"url": url}, "measures": {"views": URLS[url]}} for url in first]


def test_a_histogram() -> None:
    assert get("/v1/spread")["measures"]["urls"] == {"<1": 0, "1": 2, "10": 1, "100": 0}


@pytest.mark.parametrize("last", ["1h", "24h", "7d"])
def test_a_window_and_its_series(last: str) -> None:
    hours = {"1h": 1, "24h": 24, "7d": 168}[last]
    since = datetime.fromtimestamp(NOW, UTC) - timedelta(hours=hours)
    recent = [view for view in VIEWS if view["url"] == "/" and datetime.fromisoformat(view["time"]) >= since]
    assert get("/v1/rolling", url="/", last=last)["count"] == len(recent)
    steps = get("/v1/rolling/series", url="/", last=last, step="1h")["series"]
    assert (len(steps), sum(step["count"] for step in steps)) == (hours, len(recent))


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


@pytest.mark.usefixtures("queue")
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
        EventCheck(HIT).texts(parse_events(body), {})
    [error] = refused.value.errors
    assert error["index"] == 1
    assert str(time) in error["detail"]
    assert len(EventCheck(VIEW).texts(parse_events(body), {})) == 2


def test_short_events_share_a_message() -> None:
    assert queue_messages(['{"url":"/a"}', '{"url":"/b"}']) == ['[{"url":"/a"},{"url":"/b"}]']
