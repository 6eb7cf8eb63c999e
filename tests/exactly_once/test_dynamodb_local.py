"""Seeded fault schedules over AWS's own engine and its stream."""

from __future__ import annotations

from functools import partial

import pytest

from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.schedules.backend import LocalBackend
from simulation.schedules.schedule import check

SCHEDULES = 10
CHUNK = 5


@pytest.mark.parametrize("first", range(0, SCHEDULES, CHUNK))
def test_every_count_is_exact_whatever_goes_wrong(first: int, dynamodb_local_engine: DynamoDBLocal) -> None:
    for seed in range(first, first + CHUNK):
        check(seed, partial(LocalBackend, dynamodb_local_engine), "dynamodb-local")
