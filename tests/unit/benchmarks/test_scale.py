from __future__ import annotations

import random
from xml.etree import ElementTree as ET

import pytest

from benchmarks.figures import bars, lines
from benchmarks.scale import TRAITS, counter_units, simulate
from dynamodb_counters._cost.batches import touched

_OURS = TRAITS["accept_and_watermark"]


@pytest.mark.parametrize("groups", [1, 7, 1000])
def test_touched_groups_are_those_of_a_draw(groups: int) -> None:
    dice = random.Random(1)
    drawn = [len({dice.randrange(groups) for _ in range(200)}) for _ in range(300)]
    assert touched(groups, 200) == pytest.approx(sum(drawn) / len(drawn), rel=0.02)


def test_an_item_takes_no_more_than_its_units() -> None:
    assert simulate(TRAITS["naive_increment"], 5_000, 1, seconds=5)["events_per_second"] == pytest.approx(1_000)
    assert simulate(TRAITS["transaction_marker"], 5_000, 1, seconds=5)["events_per_second"] < 500


@pytest.mark.parametrize("rate", [100, 10_000])
@pytest.mark.parametrize("groups", [1, 10_000])
def test_nothing_is_counted_that_did_not_come(rate: int, groups: int) -> None:
    for traits in TRAITS.values():
        found = simulate(traits, rate, groups, seconds=3)
        assert 0 < found["events_per_second"] <= rate
        assert found["write_units"] >= min(1.0, traits.event_units or 1.0)


def test_a_hot_counter_costs_ours_little_more_than_the_events() -> None:
    found = simulate(_OURS, 10_000, 1, seconds=5)
    assert found["keeps_up"]
    assert found["throttles"] == 0
    assert 1.0 < found["write_units"] < 1.1


def test_the_shards_that_feed_a_counter_are_paid_for() -> None:
    at = {shards: counter_units(_OURS, shards, shards) for shards in (1, 16, 64, 256, 1000)}
    assert at == {1: 1, 16: 1, 64: 2, 256: 8, 1000: 29}
    assert counter_units(TRAITS["coalescing"], 1000, 1000) == 1
    # Rare touches from anywhere leave few watermarks behind before they settle.
    assert counter_units(_OURS, 1000, 300 / 86_400) == 1
    assert counter_units(_OURS, 1000, 1.0) > 20


def test_write_shards_keep_a_hot_counter_small() -> None:
    plain = simulate(_OURS, 1_000_000, 1, seconds=5)
    sharded = simulate(TRAITS["accept_and_watermark_16_write_shards"], 1_000_000, 1, seconds=5)
    assert not plain["keeps_up"]
    assert sharded["keeps_up"]
    assert sharded["throttles"] == 0
    assert sharded["write_units"] < plain["write_units"]


def test_plots_are_xml() -> None:
    ET.fromstring(bars("a < b", {"x & y": 1.0, "z": 0.0}, "%"))
    ET.fromstring(lines("t", "x", "y", {"s": [(1, 0.0), (1000, 5)], "r": [(10, 2)]}))
