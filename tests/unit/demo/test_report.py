from __future__ import annotations

import dataclasses
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from demo.events import Job, View
from demo.findings import Finding
from demo.inputs import Inputs
from demo.readback import Rolling
from demo.report import report, summary
from demo.result import Result
from demo.sending import Account
from demo.truth import blog_truth, jobs_truth

END = datetime(2026, 11, 20, 9, 31, tzinfo=UTC)
START = END - timedelta(hours=24)
NOW = "2026-11-20T09:30:15+00:00"
VIEWS = [View("/a", NOW, "c1"), View("/a", NOW, "c2"), View("/a", NOW, "c1"), View("/\x1b[31m" + "x" * 99, NOW, "c1")]
JOBS = [Job("1", "j", 1_795_167_015_000), Job("1", "j", 1_795_167_015_000)]


def _result(**changes: Any) -> Result:
    exact = Result(
        inputs=Inputs(VIEWS, JOBS, 7, blog_truth(VIEWS), jobs_truth(JOBS)),
        blog=Account(4, Counter(accepted=3, duplicate=1)),
        jobs=Account(2, Counter(accepted=1, duplicate=1)),
        views={"/a": 2, VIEWS[3].url: 1},
        visitors={"c1": 2, "c2": 1},
        site_views=3,
        rolling=Rolling(START, END, {"/a": 2, VIEWS[3].url: 1}),
        jobs_placed={"1": 1},
        jobs_rolling=Rolling(START, END, {"1": 1}),
        accept_units=4.0,
        aggregate_units=6.0,
        window_units=0.5,
        seconds=12.34,
    )
    return dataclasses.replace(exact, **changes)


def test_the_report_has_the_agreed_shape() -> None:
    result = _result()
    written = json.loads(json.dumps(report(result, result.differences())))

    extra = {"differences", "jobs", "seconds"}
    assert {key: value for key, value in written.items() if key not in extra} == {
        "events_sent": 4,
        "distinct_events": 3,
        "duplicates_rejected": 1,
        "unparsable_lines": 7,
        "views": {"/a": 2, VIEWS[3].url: 1},
        "site_views": 3,
        "visitors": {"c1": 2, "c2": 1},
        "rolling_24h": {
            "as_of": "2026-11-20T09:31:00+00:00",
            "as_of_inclusive": False,
            "from": "2026-11-19T09:31:00+00:00",
            "from_inclusive": True,
            "counts": {"/a": 2, VIEWS[3].url: 1},
        },
        "write_units_per_event": {"accept": 1.0, "aggregate": 2.0},
        "window_read_units": 0.5,
        "exact": True,
    }


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"views": {"/a": 3, VIEWS[3].url: 1}}, "views of /a: 3, must be 2"),
        ({"views": {"/a": 2, VIEWS[3].url: 1, "/b": 1}}, "views of /b: 1, must be 0"),
        ({"visitors": {"c1": 2}}, "requests of c2: 0, must be 1"),
        ({"site_views": 4}, "views of the site: 4, must be 3"),
        ({"rolling": Rolling(START, END, {"/a": 1, VIEWS[3].url: 1})}, "views in 24 h of /a: 1, must be 2"),
        ({"jobs_placed": {"1": 2}}, "jobs of 1: 2, must be 1"),
        ({"jobs_rolling": Rolling(START, END, {"1": 2})}, "jobs in 24 h of 1: 2, must be 1"),
        ({"blog": Account(4, Counter(accepted=4))}, "duplicates of views: 0, must be 1"),
        (
            {"blog": Account(4, Counter(accepted=3, duplicate=1), Counter({"rejected: why": 1}))},
            "1 events rejected: why",
        ),
    ],
)
def test_whatever_is_wrong_is_told(changes: dict[str, Any], line: str) -> None:
    result = _result(**changes)
    wrong = result.differences()

    assert line in wrong
    assert report(result, wrong)["exact"] is False
    assert line in summary(result, wrong)
    assert "NOT EXACT: " in summary(result, wrong)


def test_the_interval_compared_is_the_one_covered() -> None:
    earlier = Rolling(START - timedelta(minutes=1), END - timedelta(minutes=1), {"/a": 0, VIEWS[3].url: 0})

    assert _result(rolling=earlier).differences() == []


def test_the_summary_can_be_read() -> None:
    text = summary(_result(), [])

    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 110
    assert "EXACT: all 9 counts are right (12 s)" in text
    assert "1.00 to accept a view sent, 2.00 to aggregate a distinct one" in text
    assert "from 2026-11-19 09:31 up to, not including, 2026-11-20 09:31 UTC" in text


def test_what_could_not_be_measured_is_unknown() -> None:
    result = _result(aggregate_units=None)

    assert report(result, [])["write_units_per_event"]["aggregate"] is None
    assert "unknown to aggregate" in summary(result, [])


def test_other_examples_have_a_section_a_line_and_their_differences() -> None:
    account = Account(3, Counter(accepted=2, duplicate=1), withdrawn=1)
    answers = {"accepted": 2, "duplicate": 1, "withdrawn": 1}
    exact = Finding("game", account, answers, {"totals": {"paths": 2}}, {"totals": {"paths": 2}}, ["a line"])
    right = _result(findings=[exact])
    wrong = _result(findings=[dataclasses.replace(exact, found={"totals": {"paths": 3}})])

    assert right.differences() == []
    assert right.checked == _result().checked + 1
    assert report(right, [])["game"] == {
        "events_sent": 3,
        "accepted": 2,
        "duplicates_rejected": 1,
        "withdrawn": 1,
        "totals": {"paths": 2},
    }
    assert "\na line\n" in summary(right, [])
    assert wrong.differences() == ["game: totals of paths: 3, must be 2"]
