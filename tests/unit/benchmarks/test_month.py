"""A replayed month costs what `counters cost` says, line by line."""

from __future__ import annotations

import pytest

from benchmarks.month import month


@pytest.mark.night
@pytest.mark.parametrize(("rate", "events"), [(0.01, 1_500), (1.0, 5_000)])
def test_every_line_of_a_month_is_met_within_five_percent(rate: float, events: int) -> None:
    found = list(month(rate, events))
    assert len(found) == 6
    assert [line for line in found if abs(line.deviation) > 0.05] == []
