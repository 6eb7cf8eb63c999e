"""The highest rate of a hot counter is that of the limit it reaches first, by the units measured."""

from __future__ import annotations

import pytest

from benchmarks import cost, workloads
from benchmarks.designs import DESIGNS
from dynamodb_counters._cost.ceilings import Limit


@pytest.mark.parametrize(
    ("name", "limit", "most"),
    [
        # 20 batches of 1,000 views, each with the page's item, on the partition key of the page's views.
        ("accept_and_watermark", Limit.EVENT_KEY, 996),
        ("coalescing", Limit.EVENT_KEY, 996),
        ("packed", Limit.FLUSHES, 64 / 0.006),
        ("naive_increment", Limit.ITEM, 1_000),
        ("put_then_increment", Limit.EVENT_KEY, 500),
        ("transaction_marker", Limit.ITEM, 92),
        ("hour_minute_keys", Limit.ITEM, 1_000),
    ],
)
def test_a_hot_counter_is_limited_by_what_is_full_first(name: str, limit: Limit, most: float) -> None:
    [design] = [each for each in DESIGNS if each.name == name]
    found = cost.cost(design, workloads.hot(20_000 if "_and_" in name or name == "coalescing" else 2_000), 1_000)
    assert found["limited_by"] == limit.value[0]
    assert found["counter_events_per_second"] == pytest.approx(most, rel=0.001)
