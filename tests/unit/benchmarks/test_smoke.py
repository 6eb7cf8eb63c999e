from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks import page
from benchmarks.goals import GOALS
from benchmarks.run import TINY, measure_engine, run
from simulation.engines.dynamodb_local import DynamoDBLocal


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return run(TINY, print, lambda _: None, with_engine=False)


@pytest.mark.night
def test_every_section_ends(report: dict[str, Any]) -> None:
    assert report["failed"] == {}


@pytest.mark.skipif(os.environ.get("ENGINES") != "all", reason="`make engines` runs it")
def test_the_section_on_dynamodb_local_ends(dynamodb_local_engine: DynamoDBLocal) -> None:
    report: dict[str, Any] = {"windows": {}}
    found = measure_engine(dynamodb_local_engine, TINY.engine, report)

    assert all(design["exact"] for design in found["designs"].values())
    assert report["windows"]["engine"]["packed_buckets"]["exact"]


def test_every_goal_stands_on_the_page() -> None:
    page_text = (Path(__file__).parents[3] / "docs" / "benchmarks.md").read_text()
    named = [line.partition(":")[0] for line in GOALS.strip().splitlines()]
    assert [name for name in named if f"| {name} |" not in page_text] == []


@pytest.mark.night
def test_every_goal_has_a_value_and_a_verdict(report: dict[str, Any]) -> None:
    assert len(report["goals"]) > 15
    for goal in report["goals"].values():
        assert set(goal) == {"value", "goal", "met"}
        assert isinstance(goal["met"], bool)


@pytest.mark.night
def test_our_counts_are_exact_under_redelivery_and_careless_ones_are_not(report: dict[str, Any]) -> None:
    errors = {name: each["error_percent"] for name, each in report["cost"]["redelivered"].items()}
    exact = ("packed", "accept_and_watermark", "transaction_marker", "checkpoint_transaction")
    assert {errors[name] for name in exact} == {0.0}
    assert errors["naive_increment"] > 0


@pytest.mark.night
def test_every_design_is_exact_when_nothing_comes_twice(report: dict[str, Any]) -> None:
    assert all(each["exact"] for each in report["cost"]["hot"].values())
    assert report["windows"]["memory"]["packed_buckets"]["exact"]
    packed = [each for name, each in report["cost"].items() if name.startswith("log_three_aggregates_packed")]
    assert all(each["exact"] for each in packed)
    assert report["leaderboard"]["accept_and_watermark"]["exact"]


@pytest.mark.night
def test_the_page_and_its_figures_are_written(report: dict[str, Any], tmp_path: Path) -> None:
    page.write(report, tmp_path)

    text = (tmp_path / "benchmarks.md").read_text()
    for figure in (tmp_path / "figures").iterdir():
        assert f"figures/{figure.name}" in text
    assert all(name in text for name in report["goals"])
    assert page.terminal(report)
