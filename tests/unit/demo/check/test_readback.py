from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from demo.check.readback import UnevenWindowsError, read_groups, read_rolling
from demo.terminal import Progress
from dynamodb_counters import Aggregate, Counters, Group, Window, WindowCount
from examples.blog.declarations import ROLLING, VIEWS

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


class Table:
    """Answers like `Counters`: every group counts as much as its name is long."""

    def __init__(self, *, uneven: bool = False) -> None:
        self.uneven = uneven

    def get_many(self, groups: Iterable[tuple[Aggregate, Mapping[str, Any]]]) -> list[Group]:
        return [
            Group(values, dict.fromkeys(aggregate.measures, len(next(iter(values.values())))))
            for aggregate, values in groups
        ]

    def window(self, _window: Window, values: Mapping[str, Any], *, last: timedelta, as_of: datetime) -> WindowCount:
        (value,) = values.values()
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
    assert rolling.interval == (NOW - timedelta(hours=23, minutes=59), NOW + timedelta(minutes=1))


def test_without_groups_the_interval_is_still_known() -> None:
    rolling = read_rolling(_counters(Table()), ROLLING, "url", [], as_of=NOW, progress=_progress())

    assert (rolling.counts, rolling.interval.end) == ({}, NOW + timedelta(minutes=1))


def test_windows_of_different_intervals_cannot_be_compared() -> None:
    with pytest.raises(UnevenWindowsError, match="cover 2 different intervals"):
        read_rolling(_counters(Table(uneven=True)), ROLLING, "url", ["/a", "/bc"], as_of=NOW, progress=_progress())
