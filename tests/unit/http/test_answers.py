"""The counter API's responses match counts computed here from the events alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from dynamodb_counters._http.resources import CountResources
from tests.unit.http.counted import URLS, views
from tests.unit.http.handlers import NOW, call_api, environment, request

VIEWS = views()


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


def test_groups_of_a_partition_key() -> None:
    groups = get("/v1/small", url="/")["groups"]
    by_client = {group["values"]["clientId"]: group["measures"]["n"] for group in groups}
    clients = [view["clientId"] for view in VIEWS if view["url"] == "/"]
    assert by_client == {client: clients.count(client) for client in ("c0", "c1")}


def test_a_leaderboard() -> None:
    ranked = get("/v1/views/top", limit="2")["ranked"]
    first = sorted(URLS, key=lambda url: -URLS[url])[:2]
    group = {"aggregate": "views", **WHOLE}
    assert ranked == [{**group, "values": {"url": url}, "measures": measures(url), "score": URLS[url]} for url in first]


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
