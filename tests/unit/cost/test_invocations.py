"""Invocations of the aggregator: what it writes comes back and invokes it again."""

from __future__ import annotations

import pytest

from dynamodb_counters._cost.counted_items import Counted
from dynamodb_counters._cost.invocations import invocations
from dynamodb_counters._cost.workload_settings import Workload

_MANY = (Counted(50),)


@pytest.mark.parametrize(("rate", "measured"), [(0.01, 2.81), (1.0, 1.615), (10.0, 0.602)])
def test_its_own_writes_invoke_it_again(rate: float, measured: float) -> None:
    """The real handler's figures are from `python -m benchmarks.cost_model --month`."""
    found = invocations(Workload(rate, _MANY))
    assert found.runs / rate == pytest.approx(measured, rel=0.05)
    assert found.echoes > found.events * 0.9


def test_echoes_join_the_batches_of_a_busy_table() -> None:
    found = invocations(Workload(1000, (Counted(1),)))
    assert found.echoes < found.events / 2


def test_a_window_ends_once_per_shard_that_had_records() -> None:
    busy, packed, rare = (
        invocations(load)
        for load in (Workload(10, _MANY), Workload(10, _MANY, packed=600, gather=60), Workload(1e-6, _MANY))
    )
    # Groups lie on shards that no chunk comes to.
    assert busy.windows == packed.windows == 4 / 900
    assert rare.windows == rare.events + rare.echoes
