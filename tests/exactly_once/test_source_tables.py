"""Items of other code in a table of its own: counts are exact under faulted delivery of both streams."""

from __future__ import annotations

import random
from functools import partial

import pytest

from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.night import scaled
from simulation.schedules.backend import LocalBackend, MakeBackend, MemoryBackend
from simulation.schedules.coverage import Outcome
from simulation.schedules.kinds import Kind
from simulation.schedules.schedule import Schedule

SCHEDULES = scaled(6)
ON_DYNAMODB_LOCAL = scaled(1)


def run(seed: int, make_backend: MakeBackend = MemoryBackend) -> Outcome:
    return Schedule(seed, make_backend, Kind.draw(random.Random(seed), apart=True)).run()


def test_every_count_is_exact_whatever_goes_wrong() -> None:
    outcomes = [run(seed) for seed in range(SCHEDULES)]
    assert {outcome.seed: outcome.wrong for outcome in outcomes if outcome.wrong} == {}
    assert sum(sum(outcome.faults.values()) for outcome in outcomes) > SCHEDULES


@pytest.mark.night
def test_every_count_is_exact_on_dynamodb_local(dynamodb_local_engine: DynamoDBLocal) -> None:
    outcomes = [run(seed, partial(LocalBackend, dynamodb_local_engine)) for seed in range(ON_DYNAMODB_LOCAL)]
    assert {outcome.seed: outcome.wrong for outcome in outcomes if outcome.wrong} == {}
