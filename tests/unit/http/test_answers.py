"""Answers that HTTP alone gives, as counts computed here from the events say; each refusal names its cause."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dynamodb_counters._http.event_requests import EventCheck, parse_events, queue_messages
from dynamodb_counters._http.requests import ProblemError
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters._timeline.tiers import DAY, utc
from tests.unit.http.handlers import HIT, NOW, OWN, SIZES, URLS, VIEW, call_api, environment, get, request, views

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


def refused(path: str, **parameters: object) -> tuple[int, str]:
    status, problem = get(f"/v1/{path}", **parameters)
    return status, problem["detail"]


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
        ([{"aggregate": SIZES._parts[-1].name, "values": {"url": "/"}}], 404, "no counts"),
    ],
)
def test_a_batch_is_of_whole_groups_of_aggregates(groups: list[Any], status: int, words: str) -> None:
    answered, problem = call_api(request("POST", "/v1/batch", body=json.dumps({"groups": groups})))
    assert (answered, problem["detail"][: len(words)]) == (status, words)


def test_a_span_has_the_defaults_of_all_doors() -> None:
    found = read("kept", last="24h", end="2026-09-10T00:00:00Z")
    assert (found["start"], found["end"]) == ("2026-09-09T00:00:00+00:00", "2026-09-10T00:00:00+00:00")
    assert read("kept", end="2026-09-10T00:00:00Z") == found
    assert read("kept") == read("kept", last="24h")
    assert read("kept", start=read("kept")["start"])["count"] == read("kept")["count"]


def test_a_month_in_a_time_zone_is_one_read() -> None:
    found = read("kept", **BERLIN)
    assert (found["start"], found["end"]) == ("2026-08-31T22:00:00+00:00", "2026-09-30T22:00:00+00:00")
    [month] = read("kept/series", **BERLIN, step="month", tz="Europe/Berlin")["series"]
    assert {"window": "kept", "values": {}, **month} == found
    assert (found["count"], found["complete"]) == (len(VIEWS), True)


@pytest.mark.parametrize("name", [one.name for one in OWN])
def test_parts_of_other_measures_are_no_plain_groups(name: str) -> None:
    assert refused(f"{name}/top", url="/") == (404, f"no top {name!r}; available: views")
    assert "measures" not in read(name, **({} if name == "largest" else {"url": "/"}))


def test_only_what_counts_by_time_has_a_series() -> None:
    days = {"start": utc(NOW - 2 * DAY).isoformat(), "end": utc(NOW).isoformat()}
    assert [one["count"] for one in read("clients/series", url="/", rolling="2d", **days)["series"]] == [0, 2, 2]
    assert refused("latest/series", url="/") == (
        404,
        "no series 'latest'; available: rolling, kept, clients, hourly",
    )


@pytest.mark.parametrize(
    ("path", "parameters", "said"),
    [
        ("sizes", {"p": "1.1"}, "invalid p='1.1': expected up to 20 numbers from 0 to 1"),
        ("sizes", {"p": ",".join(["0.5"] * 21)}, "invalid p="),
        ("hourly", {"last": "366d"}, "invalid span='about 4392 read units': expected at most 650"),
        ("rolling", {"last": "1h", **SEPTEMBER}, "invalid last='1h': expected one span of time, not 'start' as well"),
        ("rolling", {"as_of": SEPTEMBER["end"], **SEPTEMBER}, "expected one span of time, not 'start' as well"),
        ("rolling", {"as_of": BERLIN["end"], "end": BERLIN["end"]}, "expected one span of time, not 'end' as well"),
        ("rolling", {"last": "0h"}, "invalid last='0h': expected a number and a unit such as 30s"),
        *(
            (
                path,
                {"as_of": moment, **({"step": "1h"} if path.endswith("series") else {})},
                f"as_of={moment!r}: expected",
            )
            for path in ("rolling", "rolling/series")
            for moment in ("1969-12-31T23:59:59Z", "9999-01-01T00:00:00Z", "2026-09-21T14:13:20", "now", "")
        ),
    ],
)
def test_a_parameter_out_of_its_bounds_is_refused(path: str, parameters: dict[str, str], said: str) -> None:
    status, detail = refused(path, url="/", **parameters)
    assert (status, said in detail) == (400, True), detail


@pytest.mark.parametrize("query", ["url=%ff", "&".join(["url=/"] * 101)])
def test_a_query_that_is_no_text_or_has_too_many_parts_is_refused(query: str) -> None:
    status, problem = call_api(request("GET", "/v1/rolling", query))
    assert (status, problem["detail"]) == (400, "invalid query string: expected UTF-8 with at most 100 parameters")


@pytest.mark.parametrize("time", ["yesterday", "2026-09-21T14:13:20", 10**15, "9999-12-31T23:59:59-23:59"])
def test_a_packed_event_without_a_clear_time_is_refused_at_the_door(time: object) -> None:
    body = json.dumps([VIEWS[0], {**VIEWS[1], "time": time}])
    with pytest.raises(ProblemError) as problem:
        EventCheck(HIT).texts(parse_events(body), {})
    [error] = problem.value.errors
    assert error["index"] == 1
    assert str(time) in error["detail"]
    assert len(EventCheck(VIEW).texts(parse_events(body), {})) == 2


def test_short_events_share_a_message() -> None:
    assert queue_messages(['{"url":"/a"}', '{"url":"/b"}']) == ['[{"url":"/a"},{"url":"/b"}]']
