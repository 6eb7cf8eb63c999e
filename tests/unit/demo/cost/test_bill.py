from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from demo.cost.bill import Bill, Costs
from demo.cost.meter import Meter

METRICS = {"ItemsUpdated": 5.0, "AlreadyCounted": 1.0}


def _bill(metrics: dict[str, float]) -> Bill:
    accepting: Any = SimpleNamespace(write_units=8.0)
    reading: Any = SimpleNamespace(units_per_item=2.0, units_per_query=0.5)
    return Bill(cast("Meter", accepting), cast("Meter", reading), lambda: metrics)


@pytest.mark.parametrize(
    ("metrics", "sent", "costs"),
    [
        (METRICS, 4, Costs(2.0, 4.0, 0.5, METRICS)),
        ({}, 4, Costs(2.0, None, 0.5, {})),
        (METRICS, 0, Costs(0.0, 0.0, 0.5, {})),
    ],
)
def test_units_are_divided_among_the_events(metrics: dict[str, float], sent: int, costs: Costs) -> None:
    assert _bill(metrics).costs(sent, distinct=min(sent, 3)) == costs
