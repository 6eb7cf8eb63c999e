"""Windows over HTTP: spans between two moments, local calendars, and several windows at once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from dynamodb_counters._http.requests import ProblemError
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters.errors import InvalidArgumentError
from simulation.counters_in_memory import counters_in_memory
from tests.unit.http.counted import URLS
from tests.unit.http.handlers import KEPT

TOTAL = sum(URLS.values())
SEPTEMBER = {"start": "2026-09-01T00:00:00Z", "end": "2026-10-01T00:00:00Z"}


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


def test_a_batch_reads_groups_and_windows_at_once(counted: CountResources) -> None:
    asked = [{"window": "kept", "values": {}, **SEPTEMBER}, {"window": "rolling", "values": {"url": "0"}, "last": "7d"}]
    group = {"aggregate": "views", "values": {"url": "/"}}
    found = counted.batch({"groups": [group], "windows": asked})
    assert [one["count"] for one in found["windows"]] == [TOTAL, URLS["0"]]
    assert found["windows"][0] == window(counted, **SEPTEMBER)
    assert found["groups"][0]["values"] == {"url": "/"}
    assert counted.batch({"groups": [group]}) == {"groups": found["groups"]}


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


@pytest.mark.parametrize(
    "document",
    [
        {"windows": []},
        {"windows": [{"window": "kept"}]},
        {"windows": [{"window": "kept", "values": {}, "consistent": "true"}]},
        {"windows": [{"window": "kept", "values": {}, "last": 5}]},
        {"windows": [{"window": "views", "values": {"url": "/"}}]},
        {"spans": []},
    ],
)
def test_a_batch_of_windows_that_is_none_is_refused(counted: CountResources, document: Any) -> None:
    with pytest.raises(ProblemError):
        counted.batch(document)


def test_the_spans_of_a_batch_have_one_bound() -> None:
    with counters_in_memory([KEPT], now=datetime(2026, 12, 31, tzinfo=UTC)) as counters:
        resources = CountResources(counters, [KEPT], counters.clock)
        span = {"window": "kept", "values": {}, "start": "2026-01-01T00:00:00Z", "end": "2026-07-01T00:00:00Z"}
        other = {**span, "start": "2026-07-01T00:00:00Z", "end": "2026-12-31T00:00:00Z"}
        for one in (span, other):
            assert len(resources.batch({"windows": [one]})["windows"]) == 1
        with pytest.raises(InvalidArgumentError, match=r"about [0-9]+ read units': expected at most 650"):
            resources.batch({"windows": [span, other] * 2})
