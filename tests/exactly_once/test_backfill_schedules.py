"""Seeded schedules of backfills, redefinitions and verifications: exact whatever goes wrong."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from simulation.backfill import backfill_schedule, verification_schedule
from simulation.backfill.backfill_schedule import BackfillSchedule, WrongBackfillError
from simulation.backfill.local_table import DatedLocalBackend
from simulation.backfill.verification_schedule import VerificationSchedule
from simulation.engines.dynamodb_local import DynamoDBLocal

SCHEDULES = 30
CHUNK = 10
VERIFICATIONS = 20
ON_LOCAL = 1
OFTEN = {
    backfill_schedule.COMPLETE: 10,
    backfill_schedule.VOID: 2,
    backfill_schedule.RESUMED: 5,
    backfill_schedule.REDEFINED: 5,
}
"""How often ten schedules come across it, at least."""


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_every_backfill_and_redefinition_is_exact_whatever_goes_wrong(first: int) -> None:
    reached: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        reached += backfill_schedule.check(seed).reached
    assert {name: reached[name] for name, times in OFTEN.items() if reached[name] < times} == {}


@pytest.mark.parametrize("first", range(0, VERIFICATIONS, CHUNK))
def test_verifications_find_what_was_spoiled_and_nothing_else(first: int) -> None:
    reached: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        outcome = VerificationSchedule(seed).run()
        if outcome.wrong:
            raise WrongBackfillError(outcome, "memory", "verify")
        reached += outcome.reached
    assert reached[verification_schedule.FOUND] > 0


def test_a_seed_decides_about_everything() -> None:
    assert BackfillSchedule(1).run() == BackfillSchedule(1).run()


def test_backfills_are_exact_on_dynamodb_local(dynamodb_local_engine: DynamoDBLocal) -> None:
    for seed in range(ON_LOCAL):
        backfill_schedule.check(seed, partial(DatedLocalBackend, dynamodb_local_engine), "dynamodb-local")
