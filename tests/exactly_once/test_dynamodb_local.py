"""Seeded fault schedules over AWS's own engine and its stream."""

from __future__ import annotations

from functools import partial

from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.night import scaled
from simulation.schedules.backend import LocalBackend
from simulation.schedules.schedule import check

SCHEDULES = scaled(1)


def test_every_count_is_exact_whatever_goes_wrong(dynamodb_local_engine: DynamoDBLocal) -> None:
    for seed in range(SCHEDULES):
        check(seed, partial(LocalBackend, dynamodb_local_engine), "dynamodb-local")
