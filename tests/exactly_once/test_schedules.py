"""Seeded fault schedules in memory and over AWS's own engine: every count exact, whatever goes wrong."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.night import scaled
from simulation.pairs import coverage
from simulation.pairs.backend import LocalBackend, MakeBackend, MemoryBackend
from simulation.pairs.coverage import Outcome
from simulation.pairs.schedule import check
from simulation.pairs.swarm import Swarm

SCHEDULES = scaled(30)
SEEDS = (*range(SCHEDULES), 36)
"""The last one brings about what is rare: bookkeeping spoiled, and a definition that cannot be read."""
OFTEN = {coverage.STRAGGLER: 150, coverage.UNREADABLE: 30, coverage.CROWDED: 20, coverage.SPOILED: 50}
OFTEN |= {coverage.MOVED: 2900, coverage.PRUNED: 250, coverage.DROPPED: 1700, coverage.FINAL: 7000}
OFTEN |= {coverage.OUTLIVED: 1000, coverage.HOURS: 100, coverage.REPLAYED: 50, coverage.ROLLED_OVER: 50}
ANSWERS = {"accepted": 700, "duplicate": 400, "too_late": 20, "retracted": 50, "absent": 80}
OFTEN |= {coverage.ANSWERED + answer: times for answer, times in ANSWERS.items()}
"""How often six hundred schedules come across what checkpoints, pruning and packed events are about, at least."""


def _run(seed: int, only: str = "", make_backend: MakeBackend = MemoryBackend, engine: str = "memory") -> Outcome:
    return check(seed, make_backend, engine, swarm=Swarm.draw(seed, only), how=f" --swarm {only}".rstrip())


def test_every_count_is_exact_whatever_goes_wrong() -> None:
    reached: Counter[str] = Counter()
    for seed in SEEDS:
        outcome = _run(seed)
        for name, times in (outcome.reached + outcome.faults).items():
            reached[name.partition(":")[0] if name.startswith(coverage.SPOILED) else name] += times
    often = {name: times * SCHEDULES // 600 for name, times in OFTEN.items()}
    assert {name: reached[name] for name, times in often.items() if reached[name] < times} == {}


def test_every_count_is_exact_on_dynamodb_local(dynamodb_local_engine: DynamoDBLocal) -> None:
    for seed in range(scaled(1)):
        _run(seed, "", partial(LocalBackend, dynamodb_local_engine), "dynamodb-local")


def test_every_count_of_a_source_table_is_exact_whatever_goes_wrong() -> None:
    assert sum((_run(seed, "apart").faults for seed in range(scaled(6))), Counter()).total() > scaled(6)


@pytest.mark.night
def test_every_count_of_a_source_table_is_exact_on_dynamodb_local(dynamodb_local_engine: DynamoDBLocal) -> None:
    for seed in range(scaled(1)):
        _run(seed, "apart", partial(LocalBackend, dynamodb_local_engine), "dynamodb-local")


def test_what_one_delivery_has_put_aside_no_later_code_counts() -> None:
    assert sum((_run(seed, "mended").reached for seed in range(scaled(7))), Counter())[coverage.MENDED]


def test_a_seed_decides_about_everything() -> None:
    for seed in range(3):
        assert _run(seed) == _run(seed)
