from __future__ import annotations

import random
from xml.etree import ElementTree as ET

import pytest

from benchmarks.figures import bars, lines
from benchmarks.scale import TRAITS, simulate, touched

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
        assert found["write_units"] >= 1.0


def test_a_hot_counter_costs_ours_little_more_than_the_events() -> None:
    found = simulate(_OURS, 10_000, 1, seconds=5)
    assert found["keeps_up"]
    assert found["throttles"] == 0
    assert 1.0 < found["write_units"] < 1.1


def test_plots_are_xml() -> None:
    ET.fromstring(bars("a < b", {"x & y": 1.0, "z": 0.0}, "%"))
    ET.fromstring(lines("t", "x", "y", {"s": [(1, 0.0), (1000, 5)], "r": [(10, 2)]}))
