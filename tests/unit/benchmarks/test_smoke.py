from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import page
from benchmarks.run import TINY, run


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return run(TINY, lambda _: None, with_engine=False)


def test_a_report_survives_json(report: dict[str, Any]) -> None:
    assert json.loads(json.dumps(report))["goals"] == report["goals"]


def test_every_goal_has_a_value_and_a_verdict(report: dict[str, Any]) -> None:
    assert len(report["goals"]) > 15
    for goal in report["goals"].values():
        assert set(goal) == {"value", "goal", "met"}
        assert isinstance(goal["met"], bool)


def test_our_counts_are_exact_under_redelivery_and_careless_ones_are_not(report: dict[str, Any]) -> None:
    errors = {name: each["error_percent"] for name, each in report["cost"]["redelivered"].items()}
    exact = ("packed", "accept_and_watermark", "transaction_marker", "checkpoint_transaction")
    assert {errors[name] for name in exact} == {0.0}
    assert errors["naive_increment"] > 0


def test_every_design_is_exact_when_nothing_comes_twice(report: dict[str, Any]) -> None:
    assert all(each["exact"] for each in report["cost"]["hot"].values())
    assert report["windows"]["memory"]["packed_buckets"]["exact"]
    packed = [each for name, each in report["cost"].items() if name.startswith("log_three_aggregates_packed")]
    assert all(each["exact"] for each in packed)
    assert report["leaderboard"]["accept_and_watermark"]["exact"]


def test_the_page_and_its_figures_are_written(report: dict[str, Any], tmp_path: Path) -> None:
    page.write(report, tmp_path)

    text = (tmp_path / "benchmarks.md").read_text()
    for figure in (tmp_path / "figures").iterdir():
        assert f"figures/{figure.name}" in text
    assert all(name in text for name in report["goals"])
    assert page.terminal(report)
