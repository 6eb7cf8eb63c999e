"""Seeded fault schedules over the engine in memory: every count exact, whatever goes wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from simulation.schedules import coverage
from simulation.schedules.schedule import Schedule, check

SCHEDULES = 2000
CHUNK = 200
OFTEN = {
    coverage.MOVED: 1000,
    coverage.SETTLED: 30,
    coverage.PRUNED: 50,
    coverage.DROPPED: 500,
    coverage.FINAL: 1000,
    coverage.OUTLIVED: 100,
    coverage.HOURS: 30,
    coverage.REPLAYED: 30,
    coverage.DEPLOYED: 30,
    coverage.ROLLED_OVER: 30,
}
"""How often some hundred schedules come across what checkpoints and pruning are about, at least.

Records too old to be counted and zombies of an old version are rarer; test_checkpoints.py has them for sure.
"""


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_every_count_is_exact_whatever_goes_wrong(first: int) -> None:
    reached: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        reached += check(seed).reached
    assert {name: reached[name] for name, times in OFTEN.items() if reached[name] < times} == {}


def test_a_seed_decides_about_everything() -> None:
    assert [Schedule(seed).run() for seed in range(10)] == [Schedule(seed).run() for seed in range(10)]
