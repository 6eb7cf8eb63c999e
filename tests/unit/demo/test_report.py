from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from demo.cost import Costs
from demo.example import Finding, Reading
from demo.examples.blog.example import Blog
from demo.examples.blog.traffic import View
from demo.examples.leaderboard.example import Leaderboard
from demo.examples.leaderboard.traffic import Submission
from demo.report import Result, report, summary
from demo.sending.deliveries import Deliveries
from tests.unit.demo.fakes import NOW, finding

BLOG = Blog([View("/a", NOW.isoformat(), "c")] * 2, NOW)
SITE = finding(
    BLOG,
    {
        "all views": {"the site": 1},
        "views": {"/a": 1},
        "requests": {"c": 1},
        "views in 24 h": {"/a": 1},
    },
    costs=Costs(1.0, 2.0, 0.5, {}),
)
LEADERBOARD = Leaderboard(Deliveries(*[[Submission("ann", "p")]] * 3))
PATHS = LEADERBOARD.expected(Reading({"top_players": {"ann": 1}}))
GAME = finding(LEADERBOARD, PATHS)


def _result(game: Finding = GAME, **changes: Any) -> Result:
    return replace(Result([SITE, game], 12.34), **changes)


def test_the_report_has_the_agreed_shape() -> None:
    written = json.loads(json.dumps(report(_result())))

    assert written.keys() == {*BLOG.section(SITE), "leaderboard", "exact", "differences", "seconds"}
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

    for found in _result().findings:
        assert "\n".join(found.example.lines(found)) in text
    assert "events sent            blog: 2, leaderboard: 2\n" in text
    assert "duplicates rejected    blog: 1, leaderboard: 0\n" in text
    assert f"EXACT: all {SITE.checked + GAME.checked} counts are right (12 s)" in text


def test_whatever_is_wrong_is_reported() -> None:
    line = "leaderboard: players of ann: 2, must be 1"
    result = _result(replace(GAME, reading=Reading({**PATHS, "players": {"ann": 2}})))

    assert report(result)["differences"] == result.differences() == [line]
    assert report(result)["exact"] is False
    assert f"\n{line}\nNOT EXACT: 1 differences (12 s)" in summary(result)


def test_a_long_list_of_differences_is_cut_and_a_stall_is_reported() -> None:
    many = {f"player-{number}": 1 for number in range(30)}
    text = summary(_result(replace(GAME, reading=Reading({**PATHS, "more": many})), stalled="the counts stalled"))

    assert "\n… and 10 more\nthe counts stalled\nNOT EXACT: 30 differences" in text
