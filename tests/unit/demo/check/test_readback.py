from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from demo.check.readback import UnevenWindowsError, read_groups, read_rolling
from demo.terminal import Progress
from dynamodb_counters import Counters
from examples.blog.declarations import ROLLING, VIEWS
from tests.unit.demo.fakes import NameLengths

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


def _counters(*, uneven: bool = False) -> Counters:
    return cast("Counters", NameLengths(uneven=uneven))


def _progress() -> Progress:
    return Progress(io.StringIO())


def test_groups_are_read_by_name() -> None:
    assert read_groups(_counters(), VIEWS, "url", ["/a", "/bcd"]) == {"/a": 2, "/bcd": 4}
    assert read_groups(_counters(), VIEWS, "url", []) == {}


def test_windows_state_their_interval() -> None:
    urls = [f"/{'x' * size}" for size in range(100)]

    rolling = read_rolling(_counters(), ROLLING, "url", urls, as_of=NOW, progress=_progress())

    assert rolling.counts == {url: len(url) for url in urls}
    assert rolling.interval == (NOW - timedelta(hours=23, minutes=59), NOW + timedelta(minutes=1))


def test_without_groups_the_interval_is_still_known() -> None:
    rolling = read_rolling(_counters(), ROLLING, "url", [], as_of=NOW, progress=_progress())

    assert (rolling.counts, rolling.interval.end) == ({}, NOW + timedelta(minutes=1))


def test_windows_of_different_intervals_cannot_be_compared() -> None:
    with pytest.raises(UnevenWindowsError, match="cover 2 different intervals"):
        read_rolling(_counters(uneven=True), ROLLING, "url", ["/a", "/bc"], as_of=NOW, progress=_progress())
