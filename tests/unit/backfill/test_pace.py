"""A run that may consume some units a second waits until it may have consumed what it has."""

from __future__ import annotations

from typing import Any

from dynamodb_counters._backfill.feeds import Pace
from dynamodb_counters._table import Table
from simulation.clock import VirtualClock

CLIENT: Any = None


def test_units_are_waited_for_and_time_without_any_is_not_made_up_for() -> None:
    clock, slept = VirtualClock(), list[float]()
    pace = Pace(Table("counters", CLIENT, clock=clock, sleep=slept.append), 10.0)
    pace.spend(20)
    pace.spend(5)
    clock.advance(60)
    pace.spend(10)
    assert (slept, pace.consumed) == ([2.0, 2.5, 1.0], 35)


def test_a_run_without_a_limit_never_waits() -> None:
    slept: list[float] = []
    pace = Pace(Table("counters", CLIENT, clock=VirtualClock(), sleep=slept.append))
    pace.spend(1e6)
    assert (slept, pace.consumed) == ([], 1e6)
