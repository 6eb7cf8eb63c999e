"""Windows over HTTP: spans between two moments, local calendars, billing periods, and several windows at once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from dynamodb_counters._http.problems import ProblemError
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters.testing import counters_in_memory
from tests.unit.http.counted import URLS
from tests.unit.http.handlers import KEPT

TOTAL = sum(URLS.values())
SEPTEMBER = {"start": "2026-09-01T00:00:00Z", "end": "2026-10-01T00:00:00Z"}


def window(counted: CountResources, name: str = "kept", **parameters: str) -> dict[str, Any]:
    return counted.read(name, urlencode(parameters), resource="window")


def test_a_span_between_two_moments(counted: CountResources) -> None:
    found = window(counted, **SEPTEMBER)
    assert (found["count"], found["start"], found["complete"]) == (TOTAL, "2026-09-01T00:00:00+00:00", True)
    assert "total" not in found


def test_a_billing_period_in_a_time_zone_from_an_anchor(counted: CountResources) -> None:
    found = window(counted, period="month", of="2026-09", tz="Europe/Berlin", anchor="15")
    assert (found["start"], found["end"]) == ("2026-09-14T22:00:00+00:00", "2026-10-14T22:00:00+00:00")
    assert found["count"] == found["total"] == TOTAL
    assert (found["adjustment"], found["closed_at"]) == (0, None)
    assert window(counted, period="month")["count"] == TOTAL


def test_a_closed_period_stands_and_is_listed(counted: CountResources) -> None:
    [closed] = counted.read("kept", "", resource="closed")["closed"]
    day = window(counted, period="day", of=closed["start"][:10])
    assert day == {"window": "kept", "values": {}, **closed}
    assert closed["closed_at"] is not None


def test_a_series_of_local_days_between_two_moments(counted: CountResources) -> None:
    span = {"start": "2026-09-17T22:00:00Z", "end": "2026-09-21T22:00:00Z"}
    days = counted.read("kept", urlencode({**span, "step": "day", "tz": "Europe/Berlin"}), resource="series")["series"]
    assert [one["start"] for one in days] == [f"2026-09-{day}T22:00:00+00:00" for day in (17, 18, 19, 20)]
    assert sum(one["count"] for one in days) == TOTAL


def test_a_batch_reads_groups_and_windows_at_once(counted: CountResources) -> None:
    asked = [{"window": "kept", "values": {}, **SEPTEMBER}, {"window": "rolling", "values": {"url": "0"}, "last": "7d"}]
    period = {"window": "kept", "values": {}, "period": "month", "of": "2026-09"}
    group = {"aggregate": "views", "values": {"url": "/"}}
    found = counted.batch({"groups": [group], "windows": [*asked, period]})
    assert [one["count"] for one in found["windows"]] == [TOTAL, URLS["0"], TOTAL]
    assert found["windows"][0] == window(counted, **SEPTEMBER)
    assert found["groups"][0]["values"] == {"url": "/"}
    assert counted.batch({"groups": [group]}) == {"groups": found["groups"]}


@pytest.mark.parametrize(
    ("parameters", "detail"),
    [
        ({"last": "1h", "period": "day"}, "'last' and 'period' are given: expected one span of time"),
        ({"as_of": "2026-09-01T00:00:00Z", **SEPTEMBER}, "'last' and 'start' are given: expected one span of time"),
        ({"start": "2026-09-01T00:00:00Z"}, "missing parameter 'end'"),
        ({"of": "2026-09"}, "missing parameter 'period'"),
        ({"tz": "Europe/Berlin"}, "missing parameter 'period'"),
        ({"period": "hour"}, "invalid period='hour': expected one of 'day', 'week', 'month', 'year'"),
        ({"period": "day", "anchor": "2"}, "invalid anchor=2: expected 1 to 31 of months, else 1"),
        ({"period": "month", "of": "September"}, "invalid month='September': expected a month such as '2026-10'"),
        ({"period": "month", "tz": "../x"}, "invalid tz='../x': expected an IANA time zone"),
        ({"start": SEPTEMBER["end"], "end": SEPTEMBER["start"]}, "expected a moment after 'start'"),
        ({"start": "1970-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, "invalid span: the windows take about"),
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


def test_the_closed_periods_of_an_answer_are_the_last_ones() -> None:
    with counters_in_memory([KEPT], now=datetime(2026, 12, 31, tzinfo=UTC)) as counters:
        reader = counters.window(KEPT)
        days = [f"2026-{month:02}-{day:02}" for month in (7, 8, 9, 10) for day in range(1, 31 if month in (9,) else 32)]
        for day in days:
            reader.close("day", day)
        resources = CountResources(counters, [KEPT], counters.clock)
        assert len(reader.closed()) == len(days) > 100
        for query, first in (("", days[-10]), ("count=2", days[-2]), ("count=100", days[-100])):
            closed = resources.read("kept", query, resource="closed")["closed"]
            assert [one["start"][:10] for one in closed] == days[days.index(first) :]
        for query in ("count=0", "count=101", "count=x", "limit=1"):
            with pytest.raises(ProblemError):
                resources.read("kept", query, resource="closed")


def test_spans_and_the_closed_periods_of_a_batch_have_one_bound() -> None:
    with counters_in_memory([KEPT], now=datetime(2026, 12, 31, tzinfo=UTC)) as counters:
        for month in range(1, 11):
            counters.window(KEPT).close("month", f"2026-{month:02}")
        resources = CountResources(counters, [KEPT], counters.clock)
        span = {"window": "kept", "values": {}, "start": "2026-01-01T00:00:00Z", "end": "2026-07-01T00:00:00Z"}
        november = {"window": "kept", "values": {}, "period": "month", "of": "2026-11"}
        for one in (span, november):
            assert len(resources.batch({"windows": [one]})["windows"]) == 1
        with pytest.raises(ProblemError, match=r"take about [0-9]+ read units, limit: 650"):
            resources.batch({"windows": [span, november]})
