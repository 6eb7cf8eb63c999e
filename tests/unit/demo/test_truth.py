from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import demo.truth
from demo.events import Job, View
from demo.truth import blog_truth, jobs_truth

START = datetime(2026, 11, 19, 9, 30, tzinfo=UTC)
END = START + timedelta(hours=24)


def _at(time: datetime) -> str:
    return time.isoformat()


def test_each_view_counts_once() -> None:
    one, two, three = (View("/a", _at(START), "c1"), View("/a", _at(START), "c2"), View("/b", _at(START), "c1"))

    truth = blog_truth([one, two, one, three, three])

    assert truth.views == {"/a": 2, "/b": 1}
    assert truth.visitors == {"c1": 2, "c2": 1}
    assert truth.site_views == 3
    assert truth.last == START


def test_the_start_of_an_interval_counts_and_its_end_does_not() -> None:
    second = timedelta(seconds=1)
    times = [START - second, START, END - second, END]

    assert blog_truth([View("/a", _at(time), "c") for time in times]).rolling(START, END) == {"/a": 2}
    assert jobs_truth([Job("1", str(time), round(time.timestamp() * 1000)) for time in times]).rolling(START, END) == {
        "1": 2
    }


def test_groups_without_events_in_the_interval_count_zero() -> None:
    assert blog_truth([View("/old", _at(START - timedelta(days=1)), "c")]).rolling(START, END) == {"/old": 0}


def test_nothing_is_nothing() -> None:
    truth = blog_truth([])

    assert (truth.views, truth.visitors, truth.site_views, truth.last, truth.rolling(START, END)) == (
        {},
        {},
        0,
        None,
        {},
    )
    assert (jobs_truth([]).jobs, jobs_truth([]).last) == ({}, None)


@pytest.mark.parametrize("truth", ["demo.truth", "demo.aggregates_truth"])
def test_it_shares_no_code_with_the_runtime(truth: str) -> None:
    seen: set[str] = set()
    todo = {truth}
    while todo:
        module = todo.pop()
        seen.add(module)
        if module.startswith("demo."):
            path = Path(demo.truth.__file__).with_name(f"{module.removeprefix('demo.')}.py")
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom):
                    todo |= {str(node.module)} - seen
                elif isinstance(node, ast.Import):
                    todo |= {alias.name for alias in node.names} - seen

    assert {truth, "demo.events"} <= seen
    assert not any(module.startswith(("dynamodb_counters", "infra", "cdk_dynamodb_counters")) for module in seen)
