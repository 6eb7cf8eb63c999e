"""The model's units are those of the benchmark's own measurements."""

from __future__ import annotations

import pytest

from benchmarks.cost_model import TINY, compare
from benchmarks.designs import DESIGNS
from dynamodb_counters._cost.known_units import KNOWN


@pytest.mark.night
def test_every_measurement_is_met_within_five_percent() -> None:
    found = list(compare(TINY))
    settings = " ".join(each.setting for each in found)
    for part in ("hot", "scattered", "packed", "1 partitions", "4 partitions", "16 partitions", "window", "in pages"):
        assert part in settings
    assert [each for each in found if abs(each.deviation) > 0.05] == []


def test_every_known_design_of_the_benchmark_is_modelled() -> None:
    ours = {"accept_and_watermark", "packed"}
    assert {design.name for design in DESIGNS} - ours == {design.name for design in KNOWN}
