from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from demo.check.finding import Finding, Reading
from demo.check.intervals import Interval
from demo.examples.blog.example import Blog
from demo.examples.blog.traffic import View
from demo.examples.leaderboard.example import Leaderboard
from demo.examples.leaderboard.traffic import Submission
from demo.report import Result, report, summary
from demo.sending.deliveries import Deliveries
from demo.sending.send import Account

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
BLOG = Blog([View("/a", NOW.isoformat(), "c")] * 2, NOW)
LEADERBOARD = Leaderboard(Deliveries([Submission("ann", "p")], [Submission("ann", "p")], [Submission("ann", "p")]))
VIEWS = Reading(
    {
        "all views": {"the site": 1},
        "views": {"/a": 1},
        "requests": {"c": 1},
        "views in 24 h": {"/a": 1},
    },
    Interval(NOW - timedelta(hours=23), NOW + timedelta(hours=1)),
)
PATHS = LEADERBOARD.expected(Reading({"top_players": {"ann": 1}}))
SITE = Finding(
    "blog",
    Account(2, Counter(accepted=1, duplicate=1)),
    {"accepted": 1, "duplicate": 1},
    VIEWS,
    BLOG.expected(VIEWS),
)
GAME = Finding(
    "leaderboard",
    Account(2, Counter(accepted=2), withdrawn=1),
    {"accepted": 2, "withdrawn": 1},
    Reading(PATHS),
    PATHS,
)


def _result(game: Finding = GAME, **changes: Any) -> Result:
    return replace(Result([(BLOG, SITE), (LEADERBOARD, game)], 12.34), **changes)


def test_the_report_has_the_agreed_shape() -> None:
    written = json.loads(json.dumps(report(_result())))

    assert set(written) == {
        "events_sent",
        "distinct_events",
        "duplicates_rejected",
        "unparsable_lines",
        "views",
        "site_views",
        "visitors",
        "rolling_24h",
        "write_units_per_event",
        "window_read_units",
        "exact",
        "differences",
        "leaderboard",
        "seconds",
    }
    assert (written["exact"], written["differences"], written["seconds"]) == (True, [], 12.3)
    assert written["leaderboard"] == {
        "events_sent": 2,
        "accepted": 2,
        "duplicates_rejected": 0,
        "withdrawn": 1,
        **{what: dict(numbers) for what, numbers in PATHS.items()},
    }


def test_the_summary_has_each_examples_lines_and_the_verdict() -> None:
    text = summary(_result())

    for example, finding in _result().findings:
        assert "\n".join(example.lines(finding)) in text
    assert "events sent            blog: 2, leaderboard: 2\n" in text
    assert "duplicates rejected    blog: 1, leaderboard: 0\n" in text
    assert f"EXACT: all {SITE.checked + GAME.checked} counts are right (12 s)" in text


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (replace(GAME, reading=Reading({**PATHS, "players": {"ann": 2}})), "players of ann: 2, must be 1"),
        (replace(GAME, account=Account(2, Counter(accepted=1), withdrawn=1)), "responses of accepted: 1, must be 2"),
        (replace(GAME, account=replace(GAME.account, reasons=Counter({"rejected: why": 1}))), "1 events rejected: why"),
    ],
)
def test_whatever_is_wrong_is_reported(wrong: Finding, line: str) -> None:
    result = _result(wrong)

    assert report(result)["differences"] == result.differences() == [f"leaderboard: {line}"]
    assert report(result)["exact"] is False
    assert f"\nleaderboard: {line}\nNOT EXACT: 1 differences (12 s)" in summary(result)


def test_a_long_list_of_differences_is_cut_and_a_stall_is_reported() -> None:
    many = {f"player-{number}": 1 for number in range(30)}
    text = summary(_result(replace(GAME, reading=Reading({**PATHS, "more": many})), stalled="the counts stalled"))

    assert "\n… and 10 more\nthe counts stalled\nNOT EXACT: 30 differences" in text
