"""Charts: bars as high as counts, axes at round numbers and times, nothing wider than the terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters.cli.output import Point, bar_chart

START = datetime(2026, 11, 19, 22, tzinfo=UTC)


def drawn(
    counts: list[float], width: int, step: timedelta = timedelta(hours=1), zone: ZoneInfo | None = None
) -> list[str]:
    points = [Point(START + place * step, count) for place, count in enumerate(counts)]
    return [line.plain for line in bar_chart(points, width, zone or UTC)[0]]


def test_a_chart() -> None:
    assert drawn([1, 2, 4.5, 0], 30) == [
        "5 ┤",
        "  │            █████",
        "4 ┤            █████",
        "  │            █████",
        "3 ┤            █████",
        "  │            █████",
        "2 ┤      █████ █████",
        "  │      █████ █████",
        "1 ┤█████ █████ █████",
        "  │█████ █████ █████",
        "0 └──┬───────────┬─────────",
        "   22:00       00:00",
    ]


@given(
    st.lists(st.integers(0, 10**9), min_size=1, max_size=200), st.integers(30, 200), st.sampled_from([60, 3600, 86_400])
)
def test_it_fits_and_the_highest_bar_is_the_greatest_count(counts: list[int], width: int, step: int) -> None:
    lines = drawn([float(count) for count in counts], width, timedelta(seconds=step))
    assert max(map(len, lines)) <= width
    assert all(count == 0 for count in counts) == (not any(set(line) & set("▁▂▃▄▅▆▇█") for line in lines))


@pytest.mark.parametrize(
    ("zone", "labels"),
    [(None, "22:00 00:00 02:00"), (ZoneInfo("Asia/Tokyo"), "08:00 10:00 12:00"), (ZoneInfo("Asia/Kolkata"), "03:30")],
)
def test_times_are_local_and_round_where_they_can_be(zone: ZoneInfo | None, labels: str) -> None:
    below = drawn([1.0] * 6, 60, zone=zone)[-1]
    assert " ".join(below.split()).startswith(labels)


def test_neighbors_share_a_bar_where_there_is_no_room() -> None:
    points = [Point(START + place * timedelta(minutes=1), 1.0) for place in range(300)]
    chart, merged = bar_chart(points, 60, UTC)
    assert merged == 6
    assert chart[0].plain.startswith("6 ┤███")
    assert max(len(line.plain) for line in chart) <= 60
