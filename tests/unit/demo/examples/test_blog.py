from __future__ import annotations

import io
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from demo.check.intervals import Interval
from demo.cost import Costs
from demo.examples.blog.access_log import LogError
from demo.examples.blog.example import Blog
from demo.examples.blog.traffic import DEFAULT_VIEWS, View, blog_views
from demo.examples.blog.truth import BlogTruth
from tests.unit.demo.fakes import AROUND_THE_DAY, DAY, NOW, finding, name_lengths, setup, silent

MINUTE = timedelta(minutes=1)
SENT = [View("/a", "2026-11-20T09:30:15+00:00", client) for client in ("c1", "c2", "c1")]
HOSTILE = View("/\x1b[31m" + "x" * 99, "2026-11-20T09:30:15+00:00", "c1")
BLOG = Blog([*SENT, HOSTILE], NOW, 7)
COUNTS = {
    "all views": {"the site": 3},
    "views": {"/a": 2, HOSTILE.url: 1},
    "requests": {"c1": 2, "c2": 1},
    "views in 24 h": {"/a": 2, HOSTILE.url: 1},
}
MEASURED = finding(BLOG, COUNTS, costs=Costs(1.0, 2.0, 0.5, {}))


def test_views_are_skewed_diurnal_and_end_now() -> None:
    end = datetime(2026, 11, 20, 9, 30, 15, 999, tzinfo=UTC)
    views = blog_views(random.Random(1), end)
    times = [datetime.fromisoformat(view.time) for view in views]
    pages = Counter(view.url for view in views).most_common()
    hours = Counter(time.hour for time in times)
    visitors = Counter(view.client for view in views)

    assert times == sorted(times)
    assert (times[0] >= end - timedelta(hours=49), times[-1]) == (True, end.replace(microsecond=0))
    assert pages[0][1] > 10 * pages[50][1]
    assert hours[15] > 3 * hours[3]
    assert len(visitors) < len(views) / 2
    assert max(visitors.values()) > 20


def _views(url: str, *times: datetime) -> list[View]:
    return [View(url, time.isoformat(), "c") for time in times]


def test_each_view_counts_once() -> None:
    one, two, three = (View(url, NOW.isoformat(), client) for url, client in [("/a", "c1"), ("/a", "c2"), ("/b", "c1")])

    truth = BlogTruth([one, two, one, three, three])

    assert truth.counts == {"/a": 2, "/b": 1}
    assert truth.visitors == {"c1": 2, "c2": 1}
    assert truth.total == 3
    assert truth.last == NOW


def test_the_start_of_an_interval_counts_and_its_end_does_not() -> None:
    assert BlogTruth(_views("/a", *AROUND_THE_DAY)).rolling(DAY) == {"/a": 2}


def test_urls_without_views_in_the_interval_count_zero() -> None:
    assert BlogTruth(_views("/old", DAY.start - timedelta(days=1))).rolling(DAY) == {"/old": 0}


def test_nothing_is_nothing() -> None:
    truth = BlogTruth([])

    assert (truth.counts, truth.visitors, truth.total, truth.last, truth.rolling(DAY)) == ({}, {}, 0, None, {})


def test_duplicates_are_a_share_of_the_distinct_events() -> None:
    blog = Blog.prepare(setup())

    assert blog.truth.total == len(set(blog.views))
    assert len(blog.views) == DEFAULT_VIEWS + round(0.2 * blog.truth.total)


def test_a_log_is_sent_line_by_line(tmp_path: Path) -> None:
    log, output = tmp_path / "access.log", io.StringIO()
    line = '::1 - - [17/May/2015:10:05:03 +0000] "GET /{} HTTP/1.1" 200 5\n'
    log.write_text(line.format(1) + "?\n" + line.format(2) + "\n" + line.format(1))

    blog = Blog.prepare(setup(output, log=log, duplicates=0.0))

    assert [view.url for view in blog.views] == ["/1", "/2", "/1"]
    assert blog.unparsable_lines == 2
    assert blog.truth.counts == {"/1": 1, "/2": 1}
    assert "3 views, 2 lines not understood" in output.getvalue()


def test_a_log_that_has_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="No such file"):
        Blog.prepare(setup(log=tmp_path / "none.log"))


@pytest.mark.parametrize(("site", "complete"), [(1, False), (2, True), (3, True)])
def test_sums_over_groups_are_read_only_when_they_may_be_complete(site: int, complete: bool) -> None:
    blog = Blog([View("/a", NOW.isoformat(), client) for client in ("c", "d")], NOW)
    sums = {"views by url": 2, "views by clientId": 2}

    assert blog.totals(name_lengths(site=site)) == {"views": site} | (sums if complete else {})
    assert blog.expected_totals() == {"views": 2} | sums


def test_windows_are_asked_as_of_the_last_event() -> None:
    long_ago = NOW - timedelta(days=800)

    def end(views: list[View]) -> datetime:
        return Blog(views, NOW).read(name_lengths(), silent()).covered.end

    assert end(_views("/a", long_ago - timedelta(days=100), long_ago)) == long_ago + MINUTE
    assert end([]) == NOW + MINUTE


def test_its_section_has_the_agreed_shape() -> None:
    assert BLOG.section(MEASURED) == {
        "events_sent": 4,
        "distinct_events": 3,
        "duplicates_rejected": 1,
        "unparsable_lines": 7,
        "views": {"/a": 2, HOSTILE.url: 1},
        "site_views": 3,
        "visitors": {"c1": 2, "c2": 1},
        "rolling_24h": {
            "as_of": "2026-11-20T09:31:00+00:00",
            "as_of_inclusive": False,
            "from": "2026-11-19T09:31:00+00:00",
            "from_inclusive": True,
            "counts": {"/a": 2, HOSTILE.url: 1},
        },
        "write_units_per_event": {"accept": 1.0, "aggregate": 2.0},
        "window_read_units": 0.5,
    }


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"views": {"/a": 3, HOSTILE.url: 1}}, "views of /a: 3, must be 2"),
        ({"views": {"/a": 2, HOSTILE.url: 1, "/b": 1}}, "views of /b: 1, must be 0"),
        ({"requests": {"c1": 2}}, "requests of c2: 0, must be 1"),
        ({"all views": {"the site": 4}}, "all views of the site: 4, must be 3"),
        ({"views in 24 h": {"/a": 1, HOSTILE.url: 1}}, "views in 24 h of /a: 1, must be 2"),
    ],
)
def test_what_is_wrong_is_reported(changes: dict[str, dict[str, int]], line: str) -> None:
    assert finding(BLOG, COUNTS | changes).differences() == [f"blog: {line}"]


def test_the_interval_compared_is_the_one_covered() -> None:
    nothing = {"views in 24 h": {"/a": 0, HOSTILE.url: 0}}

    assert finding(BLOG, COUNTS | nothing, Interval(DAY.start - MINUTE, DAY.end - MINUTE)).differences() == []
    assert finding(BLOG, COUNTS).differences() == []


def test_its_lines_can_be_read() -> None:
    text = "\n".join(BLOG.lines(MEASURED))

    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 110
    assert "1.00 to accept a view sent, 2.00 to aggregate a distinct one" in text
    assert "from 2026-11-19 09:31 up to, not including, 2026-11-20 09:31 UTC" in text


def test_what_could_not_be_measured_is_unknown() -> None:
    unknown = replace(MEASURED, costs=replace(MEASURED.measured, aggregate=None))

    assert BLOG.section(unknown)["write_units_per_event"]["aggregate"] is None
    assert "unknown to aggregate" in "\n".join(BLOG.lines(unknown))
