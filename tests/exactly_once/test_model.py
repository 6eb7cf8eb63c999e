"""The commit protocol, tried in every interleaving of a small configuration and at random in larger ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import get_args

import pytest

from simulation.protocol import Mechanism, Model

# What each record of two shards adds to two items: some concern one item only, some add up to nothing.
SMALL = (((1, 2), (0, -2), (-1, 1)), ((1, 0), (1, 1)))
STATES = 286_983
WALKS = 2_000


def test_no_interleaving_of_two_shards_five_records_and_two_invocations_counts_wrong(
    record_property: Callable[[str, object], None],
) -> None:
    states, wrong = Model(SMALL, concurrency=2).explore()
    record_property("states", states)
    assert wrong is None
    # Fewer would mean that the model has lost some of what can happen.
    assert states == STATES


@pytest.mark.parametrize("mechanism", get_args(Mechanism))
def test_without_a_mechanism_some_interleaving_counts_wrong(mechanism: Mechanism) -> None:
    _, wrong = Model(SMALL, 2, mechanism).explore()
    assert wrong is not None


def test_random_walks_through_larger_configurations_count_right() -> None:
    for seed in range(WALKS):
        rng = random.Random(seed)
        items, concurrency = rng.randint(1, 4), rng.randint(2, 4)
        shards = tuple(
            tuple(tuple(rng.choice((0, 0, 1, -1, 3)) for _ in range(items)) for _ in range(rng.randint(1, 8)))
            for _ in range(rng.randint(1, 3))
        )
        wrong = Model(shards, concurrency).walk(rng, rng.randint(10, 60))
        assert wrong is None, f"seed {seed}: {wrong}"


def test_random_walks_find_a_missing_condition() -> None:
    model = Model(SMALL, 2, "condition")
    assert any(model.walk(random.Random(seed), 20) for seed in range(20))
