"""Measures over HTTP beyond sums, and windows: each by a path of its own, within bounds."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

from dynamodb_counters._http.requests import ProblemError
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters._timeline.tiers import DAY, utc
from tests.unit.http.counted import URLS
from tests.unit.http.handlers import NOW, OWN, call_api, environment, request

TOTAL = sum(URLS.values())
SEPTEMBER = {"start": "2026-09-01T00:00:00Z", "end": "2026-10-01T00:00:00Z"}


def get(path: str, **parameters: object) -> tuple[int, Any]:
    return call_api(request("GET", f"/v1/{path}", urlencode(parameters)))


@pytest.fixture
def _counts(counted: CountResources, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch, counted)


@pytest.mark.usefixtures("_counts")
def test_active_members_of_a_span() -> None:
    status, found = get("clients", url="/", last="2d")
    assert (status, found["active"], found["values"], found["count"]) == (200, "clients", {"url": "/"}, 2)
    assert found["complete"]
    start, end = utc(NOW - DAY).isoformat(), utc(NOW).isoformat()
    assert get("clients", url="/", start=start, end=end)[1]["count"] == 2
    status, problem = get("clients", url="/", last="31d")
    assert (status, "the longest of 'clients'" in problem["detail"]) == (400, True)
    assert get("clients", url="/", start="2026-01-01T00:00:00Z", end=end)[0] == 400


@pytest.mark.usefixtures("_counts")
def test_percentiles_of_a_group_and_of_a_span() -> None:
    status, found = get("sizes", url="/", p="0,0.5,1")
    assert (status, found["distribution"], found["count"]) == (200, "sizes", 23)
    wanted = {"0": 0.5, "0.5": 110.5, "1": 220.5}
    assert found["percentiles"].keys() == wanted.keys()
    assert all(abs(found["percentiles"][share] - value) <= value / 100 for share, value in wanted.items())
    assert "start" not in found
    status, timed = get("hourly", url="/", last="3h")
    assert (status, timed["count"], [*timed["percentiles"]]) == (200, 2, ["0.5", "0.9", "0.95", "0.99", "1"])
    assert timed["start"] < timed["end"]
    assert get("sizes", url="none")[1]["percentiles"]["0.5"] is None


@pytest.mark.usefixtures("_counts")
def test_extremes_from_either_end() -> None:
    status, found = get("latest", url="/", limit=2)
    assert (status, [one["shown"]["clientId"] for one in found["largest"]]) == (200, ["c0", "c1"])
    assert found["largest"][0]["value"] == utc(NOW - 60).isoformat()
    found = get("largest", order="smallest", limit=1)[1]["smallest"]
    assert [(one["value"], one["items"]) for one in found] == [(0.5, 3)]


@pytest.mark.usefixtures("_counts")
@pytest.mark.parametrize(
    ("path", "parameters", "said"),
    [
        ("sizes", {"p": "1.1"}, "invalid p='1.1': expected up to 20 numbers from 0 to 1"),
        ("sizes", {"p": ",".join(["0.5"] * 21)}, "invalid p="),
        ("sizes", {"last": "1h"}, "invalid last='1h': expected a field of 'sizes': url; or of p, consistent"),
        ("hourly", {"last": "366d"}, "invalid span='about 4392 read units': expected at most 650"),
        ("latest", {"order": "first"}, "invalid order='first': expected one of 'largest', 'smallest'"),
        ("latest", {"limit": "1001"}, "invalid limit="),
        ("clients", {"p": "0.5"}, "invalid p='0.5': expected a field of"),
    ],
)
def test_a_parameter_out_of_its_bounds_is_refused(path: str, parameters: dict[str, str], said: str) -> None:
    status, problem = get(path, url="/", **parameters)
    assert (status, said in problem["detail"]) == (400, True), problem


@pytest.mark.usefixtures("_counts")
@pytest.mark.parametrize("name", [one.name for one in OWN])
def test_parts_of_other_measures_are_no_plain_groups(name: str) -> None:
    status, problem = get(f"{name}/top", url="/")
    assert (status, problem["detail"]) == (404, f"no top {name!r}; available: views")
    assert "measures" not in get(name, **({} if name == "largest" else {"url": "/"}))[1]


@pytest.mark.usefixtures("_counts")
def test_what_counts_by_time_has_a_series() -> None:
    days = {"start": utc(NOW - 2 * DAY).isoformat(), "end": utc(NOW).isoformat()}
    members = get("clients/series", url="/", rolling="2d", **days)[1]["series"]
    assert [one["count"] for one in members] == [0, 2, 2]
    sizes = get("hourly/series", url="/", step="1d", p="1", **days)[1]["series"]
    assert [[*one["percentiles"]] for one in sizes] == [["1"]] * 3
    status, problem = get("latest/series", url="/")
    assert (status, problem["detail"]) == (404, "no series 'latest'; available: rolling, kept, clients, hourly")


def window(counted: CountResources, name: str = "kept", **parameters: str) -> dict[str, Any]:
    return counted.read(name, urlencode(parameters), resource="get")


def test_a_span_between_two_moments(counted: CountResources) -> None:
    found = window(counted, **SEPTEMBER)
    assert (found["count"], found["start"], found["complete"]) == (TOTAL, "2026-09-01T00:00:00+00:00", True)


def test_a_month_in_a_time_zone_is_one_read(counted: CountResources) -> None:
    found = window(counted, start="2026-09-01T00:00:00+02:00", end="2026-10-01T00:00:00+02:00")
    assert (found["start"], found["end"]) == ("2026-08-31T22:00:00+00:00", "2026-09-30T22:00:00+00:00")
    span = {"start": found["start"], "end": found["end"], "step": "month", "tz": "Europe/Berlin"}
    [month] = counted.read("kept", urlencode(span), resource="series")["series"]
    assert {"window": "kept", "values": {}, **month} == found
    assert found["count"] == TOTAL


def test_a_series_of_local_days_between_two_moments(counted: CountResources) -> None:
    span = {"start": "2026-09-17T22:00:00Z", "end": "2026-09-21T22:00:00Z"}
    days = counted.read("kept", urlencode({**span, "step": "day", "tz": "Europe/Berlin"}), resource="series")["series"]
    assert [one["start"] for one in days] == [f"2026-09-{day}T22:00:00+00:00" for day in (17, 18, 19, 20)]
    assert sum(one["count"] for one in days) == TOTAL


def test_a_span_has_the_defaults_of_all_doors(counted: CountResources) -> None:
    found = window(counted, last="24h", end="2026-09-10T00:00:00Z")
    assert (found["start"], found["end"]) == ("2026-09-09T00:00:00+00:00", "2026-09-10T00:00:00+00:00")
    assert window(counted, end="2026-09-10T00:00:00Z") == found
    assert window(counted) == window(counted, last="24h")
    assert window(counted, start=window(counted)["start"])["count"] == window(counted)["count"]


@pytest.mark.parametrize(
    ("parameters", "detail"),
    [
        ({"as_of": "2026-09-01T00:00:00Z", **SEPTEMBER}, "expected one span of time, not 'start' as well"),
        ({"as_of": "2026-09-01T00:00:00Z", "end": SEPTEMBER["end"]}, "expected one span of time, not 'end' as well"),
        ({"last": "1h", **SEPTEMBER}, "invalid last='1h': expected one span of time, not 'start' as well"),
        ({"last": "0h"}, "invalid last='0h': expected a number and a unit such as 30s"),
        ({"start": SEPTEMBER["end"], "end": SEPTEMBER["start"]}, "expected a moment after start"),
        ({"start": "1970-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, "read units': expected at most 650"),
    ],
)
def test_a_span_that_is_none_is_refused(counted: CountResources, parameters: dict[str, str], detail: str) -> None:
    with pytest.raises((ProblemError, ValueError)) as refused:
        window(counted, **parameters)
    assert detail in str(refused.value)
