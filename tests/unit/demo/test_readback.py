from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from demo.events import Job, View
from demo.inputs import Inputs
from demo.progress import Progress
from demo.readback import Reader, UnevenWindowsError, read_groups, read_rolling
from demo.truth import blog_truth, jobs_truth
from dynamodb_counters import Aggregate, Counters, Group, Window, WindowCount
from examples.blog_declarations import ROLLING, VIEWS

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


class Table:
    """Answers like `Counters`: every group counts as much as its name is long."""

    def __init__(self, *, uneven: bool = False, site: int = 2) -> None:
        self.uneven = uneven
        self.site = site
        self.asked: list[str] = []

    def get(self, aggregate: Aggregate, values: Mapping[str, Any]) -> Group:
        assert values == {}
        return Group({}, dict.fromkeys(aggregate.measures, self.site))

    def get_many(self, groups: Iterable[tuple[Aggregate, Mapping[str, Any]]]) -> list[Group]:
        return [
            Group(values, dict.fromkeys(aggregate.measures, len(next(iter(values.values())))))
            for aggregate, values in groups
        ]

    def window(self, _window: Window, values: Mapping[str, Any], *, last: timedelta, as_of: datetime) -> WindowCount:
        (value,) = values.values()
        self.asked.append(value)
        end = as_of + timedelta(minutes=len(value) if self.uneven else 1)
        return WindowCount(len(value), end - last, end)


def _counters(table: Table) -> Counters:
    return cast("Counters", table)


def _progress() -> Progress:
    return Progress(io.StringIO())


def test_groups_are_read_by_name() -> None:
    assert read_groups(_counters(Table()), VIEWS, "url", ["/a", "/bcd"]) == {"/a": 2, "/bcd": 4}
    assert read_groups(_counters(Table()), VIEWS, "url", []) == {}


def test_windows_state_their_interval() -> None:
    urls = [f"/{'x' * size}" for size in range(100)]

    rolling = read_rolling(_counters(Table()), ROLLING, "url", urls, as_of=NOW, progress=_progress())

    assert rolling.counts == {url: len(url) for url in urls}
    assert (rolling.start, rolling.end) == (NOW - timedelta(hours=23, minutes=59), NOW + timedelta(minutes=1))


def test_without_groups_the_interval_is_still_known() -> None:
    rolling = read_rolling(_counters(Table()), ROLLING, "url", [], as_of=NOW, progress=_progress())

    assert (rolling.counts, rolling.end) == ({}, NOW + timedelta(minutes=1))


def test_windows_of_different_intervals_cannot_be_compared() -> None:
    with pytest.raises(UnevenWindowsError, match="cover 2 different intervals"):
        read_rolling(_counters(Table(uneven=True)), ROLLING, "url", ["/a", "/bc"], as_of=NOW, progress=_progress())


@pytest.mark.parametrize(("site", "complete"), [(1, False), (2, True), (3, True)])
def test_sums_over_groups_are_read_only_when_they_may_be_complete(site: int, complete: bool) -> None:
    views, jobs = [View("/a", NOW.isoformat(), client) for client in ("c", "d")], [Job("1", "j", 0)]
    inputs = Inputs(views, jobs, 0, blog_truth(views), jobs_truth(jobs))
    reader = Reader(inputs, _counters(Table(site=site)), _counters(Table()), NOW, _progress())

    found = {"views": site, "jobs": 1}
    assert reader.totals() == ({**found, "views by url": 2, "requests by visitor": 2} if complete else found)
    assert reader.expected_totals().keys() == reader.totals().keys() | {"views by url", "requests by visitor"}


def test_windows_are_asked_as_of_the_last_event() -> None:
    views = [View("/a", (NOW - timedelta(days=days)).isoformat(), "c") for days in (900, 800)]
    inputs = Inputs(views, [], 0, blog_truth(views), jobs_truth([]))
    reader = Reader(inputs, _counters(Table()), _counters(Table()), NOW, _progress())

    assert reader.rolling().end == NOW - timedelta(days=800) + timedelta(minutes=1)
    assert reader.jobs_rolling().end == NOW + timedelta(minutes=1)
