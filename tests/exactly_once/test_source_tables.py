"""Items of other code in a table of its own: counts are exact under faulted delivery of both streams."""

from __future__ import annotations

import random
from functools import partial

import pytest

from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.schedules.backend import LocalBackend, MakeBackend, MemoryBackend
from simulation.schedules.kinds import Kind
from simulation.schedules.outcome import Outcome
from simulation.schedules.schedule import Schedule

SCHEDULES = 50
CHUNK = 50
ON_DYNAMODB_LOCAL = 2


def run(seed: int, make_backend: MakeBackend = MemoryBackend) -> Outcome:
    return Schedule(seed, make_backend, Kind.draw(random.Random(seed), apart=True)).run()


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_every_count_is_exact_whatever_goes_wrong(first: int) -> None:
    outcomes = [run(seed) for seed in range(first, first + CHUNK)]
    assert {outcome.seed: outcome.wrong for outcome in outcomes if outcome.wrong} == {}
    assert sum(sum(outcome.faults.values()) for outcome in outcomes) > CHUNK


@pytest.mark.parametrize("first", range(0, ON_DYNAMODB_LOCAL, 2))
def test_every_count_is_exact_on_dynamodb_local(first: int, dynamodb_local_engine: DynamoDBLocal) -> None:
    outcomes = [run(seed, partial(LocalBackend, dynamodb_local_engine)) for seed in range(first, first + 2)]
    assert {outcome.seed: outcome.wrong for outcome in outcomes if outcome.wrong} == {}
