"""Schedules in which all features run on one table at once: every pair of them is exact, whatever goes wrong."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from simulation.backfill.local_table import DatedLocalBackend
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.pairs import features
from simulation.pairs.declared import FAMILIES
from simulation.pairs.schedule import PairSchedule, WrongPairError, check
from simulation.pairs.truth import kept_of

SCHEDULES = 60
CHUNK = 20
ON_LOCAL = 2
OFTEN = {features.QUARANTINED: 2, features.REDRIVEN: 1, features.BACKFILLED: 5, features.VERIFIED: 15}
OFTEN |= {features.ONCE: 10, features.EXPIRED: 5, features.LEASES: 10, features.SPLIT: 5, features.ZOMBIES: 5}
OFTEN |= {features.INCREMENTED: 10, features.RESET: 3, features.ERASED_KEPT: 3, features.ERASED_BACK: 1}
OFTEN |= {features.REDEFINED: 3, features.ADDED: 1, features.REPAIRED: 2, features.RESTORED: 3}
"""In how many of twenty schedules each happens, at least."""


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_every_pair_of_features_is_exact_whatever_goes_wrong(first: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        happened += check(seed).happened
    assert {name: happened[name] for name, times in OFTEN.items() if happened[name] < times} == {}


def test_a_seed_decides_about_everything() -> None:
    assert PairSchedule(1).run() == PairSchedule(1).run()


def test_pairs_are_exact_on_dynamodb_local(dynamodb_local_engine: DynamoDBLocal) -> None:
    for seed in range(ON_LOCAL):
        check(seed, partial(DatedLocalBackend, dynamodb_local_engine), "dynamodb-local")


def test_features_that_happened_to_different_declarations_have_not_met() -> None:
    happened = {features.PLAIN: {"kept"}, features.RESET: {"taps"}, features.SPLIT: features.EVERYTHING}
    met = features.pairs(happened)
    assert met[features.PLAIN, features.SPLIT] == 1
    assert met[features.PLAIN, features.RESET] == 0


def test_no_group_must_hold_a_tally_of_other_bins() -> None:
    three, two = (FAMILIES["per_client"][variant][1].declaration for variant in (0, 2))
    assert kept_of(three, two) == {"capped"}
    assert kept_of(three, three) == {"clients.1", "clients.2", "clients.3", "capped"}


def test_a_wrong_schedule_tells_how_to_run_it_again() -> None:
    outcome = PairSchedule(1).run()
    outcome.wrong.append("a count")
    told = str(WrongPairError(outcome, "memory", ("erase",)))
    assert told.endswith("python -m simulation.pairs --engine memory --seed 1 --count 1 --without erase")
