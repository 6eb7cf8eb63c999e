from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__, page
from benchmarks.goals import GOALS
from benchmarks.run import TINY, Section, measure_engine, measure_sections, run
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


def test_a_section_that_fails_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> dict[str, Any]:
        raise ValueError("not the same resources")

    def run_three(_: object, say: Any, keep: Any, **__: object) -> dict[str, Any]:
        def keep_and_look(part: dict[str, Any]) -> None:
            keep(part)
            kept.append(json.loads(file.read_text()))

        found: dict[str, Any] = {}
        sections: list[Section] = [
            ("first", {"a": lambda _: 1}),
            ("synthesis", {"synth": fail}),
            ("last", {"b": lambda found: found["a"] + 1}),
        ]
        measure_sections(found, sections, say, keep_and_look)
        return found

    kept: list[dict[str, Any]] = []
    monkeypatch.setattr("benchmarks.run.run", run_three)
    monkeypatch.setattr("os.environ", {})
    file, docs = tmp_path / "reports" / "report.json", tmp_path / "docs"

    assert __main__.main(["--report", str(file), "--docs", str(docs)]) == 1
    assert [list(each) for each in kept] == [["failed", "a"], ["failed", "a"], ["failed", "a", "b"]]
    assert json.loads(file.read_text()) == {
        "failed": {"synthesis": "ValueError: not the same resources"},
        "a": 1,
        "b": 2,
    }
    assert not docs.exists()
    told = capsys.readouterr().err
    assert "not measured: synthesis: ValueError: not the same resources" in told
    assert str(file) in told
