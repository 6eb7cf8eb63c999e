"""Seeded fault schedules over the engine in memory: every count exact, whatever goes wrong."""

from __future__ import annotations

import pytest

from simulation.schedules.schedule import Schedule, check

SCHEDULES = 2000
CHUNK = 100


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_every_count_is_exact_whatever_goes_wrong(first: int) -> None:
    for seed in range(first, first + CHUNK):
        check(seed)


def test_a_seed_decides_about_everything() -> None:
    assert [Schedule(seed).run() for seed in range(10)] == [Schedule(seed).run() for seed in range(10)]
