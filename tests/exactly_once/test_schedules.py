"""Seeded fault schedules in memory and over AWS's own engine: every count exact, whatever goes wrong."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import pytest

from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.night import scaled
from simulation.schedules import coverage
from simulation.schedules.backend import LocalBackend, MakeBackend, MemoryBackend
from simulation.schedules.kinds import Kind
from simulation.schedules.schedule import Schedule, check

SCHEDULES = scaled(25)
ALSO = (368, 383)
"""Seeds that alone show what happens to a longer batch some of whose items were written before."""

OFTEN = {
    coverage.REDECLARED: 60,
    coverage.STRAGGLER: 150,
    coverage.LATER: 40,
    coverage.UNREADABLE: 8,
    coverage.PARTLY: 200,
    coverage.AGAIN: 200,
    coverage.FLOOD: 10,
    coverage.CROWDED: 3,
    coverage.SPOILED: 20,
    coverage.MOVED: 1000,
    coverage.PRUNED: 30,
    coverage.DROPPED: 500,
    coverage.FINAL: 1000,
    coverage.OUTLIVED: 100,
    coverage.HOURS: 20,
    coverage.REPLAYED: 15,
    coverage.DEPLOYED: 15,
    coverage.ROLLED_OVER: 15,
    coverage.CHUNKS: 200,
    coverage.TAKEN_BACK: 15,
    coverage.EXPIRED_EVENTS: 3,
    coverage.UNANSWERED: 200,
    coverage.ANSWERED + "accepted": 300,
    coverage.ANSWERED + "duplicate": 300,
    coverage.ANSWERED + "too_late": 100,
    coverage.ANSWERED + "retracted": 15,
    coverage.ANSWERED + "absent": 30,
}
"""How often two hundred schedules come across what checkpoints, pruning and packed events are about, at least."""


def test_every_count_is_exact_whatever_goes_wrong() -> None:
    reached: Counter[str] = Counter()
    for seed in (*range(SCHEDULES), *ALSO):
        outcome = check(seed)
        reached += outcome.reached
        for name, times in outcome.faults.items():
            reached[name.partition(":")[0]] += times
    often = {name: times * SCHEDULES // 800 for name, times in OFTEN.items()}
    assert {name: reached[name] for name, times in often.items() if reached[name] < times} == {}


def test_every_count_is_exact_on_dynamodb_local(dynamodb_local_engine: DynamoDBLocal) -> None:
    for seed in range(scaled(1)):
        check(seed, partial(LocalBackend, dynamodb_local_engine), "dynamodb-local")


def _apart(schedules: int, make_backend: MakeBackend = MemoryBackend) -> int:
    """Run schedules of items that other code keeps in a table of its own; return the number of faults."""
    kinds = [Kind.draw(random.Random(seed), apart=True) for seed in range(schedules)]
    outcomes = [Schedule(seed, make_backend, kind).run() for seed, kind in enumerate(kinds)]
    assert {outcome.seed: outcome.wrong for outcome in outcomes if outcome.wrong} == {}
    return sum(sum(outcome.faults.values()) for outcome in outcomes)


def test_every_count_of_a_source_table_is_exact_whatever_goes_wrong() -> None:
    assert _apart(scaled(6)) > scaled(6)


@pytest.mark.night
def test_every_count_of_a_source_table_is_exact_on_dynamodb_local(dynamodb_local_engine: DynamoDBLocal) -> None:
    _apart(scaled(1), partial(LocalBackend, dynamodb_local_engine))


def test_what_one_delivery_has_put_aside_no_later_code_counts() -> None:
    reached: Counter[str] = Counter()
    for seed in (43, 55, 59, *range(scaled(4))):
        outcome = Schedule(seed, kind=Kind.draw(random.Random(seed), mended=True)).run()
        assert outcome.wrong == [], f"seed {seed} of `soak --mended`"
        reached += outcome.reached
    assert reached[coverage.MENDED]


def test_a_seed_decides_about_everything() -> None:
    assert [Schedule(seed).run() for seed in range(3)] == [Schedule(seed).run() for seed in range(3)]
