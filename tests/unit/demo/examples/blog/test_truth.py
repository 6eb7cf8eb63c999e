from __future__ import annotations

from datetime import UTC, datetime, timedelta

from demo.check.intervals import Interval
from demo.examples.blog.traffic import View
from demo.examples.blog.truth import blog_truth

START = datetime(2026, 11, 19, 9, 30, tzinfo=UTC)
DAY = Interval(START, START + timedelta(hours=24))


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
    times = [START - second, START, DAY.end - second, DAY.end]

    assert blog_truth([View("/a", _at(time), "c") for time in times]).rolling(DAY) == {"/a": 2}


def test_urls_without_views_in_the_interval_count_zero() -> None:
    assert blog_truth([View("/old", _at(START - timedelta(days=1)), "c")]).rolling(DAY) == {"/old": 0}


def test_nothing_is_nothing() -> None:
    truth = blog_truth([])

    assert (truth.views, truth.visitors, truth.site_views, truth.last, truth.rolling(DAY)) == ({}, {}, 0, None, {})
