"""The log of chunks: every interleaving of a few writers, random ones of more, and its fold."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import get_args

import pytest

from simulation import protocol
from simulation.packed_protocol import RETRACT, Entry, Mechanism, Model

# Two jobs have an entry in common, one brings a newer version, one takes back what may not have come yet.
SMALL = (
    (Entry(0, 1),),
    (Entry(0, 3), Entry(1, 1)),
    (Entry(0, RETRACT),),
    (Entry(1, 1), Entry(0, 1)),
)
STATES = 246_906
WALKS = 3_000


def test_no_interleaving_of_two_writers_four_jobs_and_three_faults_is_wrong(
    record_property: Callable[[str, object], None],
) -> None:
    states, wrong = Model(SMALL, writers=2, faults=3).explore()
    record_property("states", states)
    assert wrong is None
    # Fewer would mean that the model has lost some of what can happen.
    assert states == STATES


def test_no_interleaving_of_three_writers_is_wrong() -> None:
    _, wrong = Model(SMALL[:3], writers=3, faults=3).explore()
    assert wrong is None


@pytest.mark.parametrize("mechanism", get_args(Mechanism))
def test_without_a_mechanism_some_interleaving_is_wrong(mechanism: Mechanism) -> None:
    _, wrong = Model(SMALL[:3], 2, 2, mechanism).explore()
    assert wrong is not None


def test_a_read_after_a_refusal_that_misses_chunks_costs_time_only() -> None:
    _, wrong = Model(SMALL[:3], 3, 2, strong_reads=False).explore()
    assert wrong is None


def test_random_walks_of_many_writers_are_right() -> None:
    for seed in range(WALKS):
        rng = random.Random(seed)
        model = _larger(rng)
        end = model.walk(rng)
        assert not model.is_wrong(end), f"seed {seed}: {end}"
        assert all(job.told for job in end.jobs), f"seed {seed}: not at its end: {end}"


@pytest.mark.parametrize("mechanism", get_args(Mechanism))
def test_random_walks_find_a_missing_mechanism(mechanism: Mechanism) -> None:
    for seed in range(WALKS):
        rng = random.Random(seed)
        model = _larger(rng, mechanism)
        if model.is_wrong(model.walk(rng)):
            return
    pytest.fail(f"no walk of {WALKS} found it")


def test_a_log_is_folded_exactly_however_its_chunks_are_delivered() -> None:
    for seed in range(WALKS // 10):
        rng = random.Random(seed)
        log = _larger(rng).walk(rng).log
        groups = sorted({(row.key, row.version) for chunk in log for row in chunk.rows})
        if groups:
            sums = [Counter[tuple[int, int]]() for _ in log]
            for chunk, added in zip(log, sums, strict=True):
                for row in chunk.rows:
                    added[row.key, row.version] += row.sign
            # To the fold a chunk is a record that adds to each group what its rows come to.
            records = tuple(tuple(added[group] for group in groups) for added in sums)
            wrong = protocol.Model((records,), concurrency=3).walk(rng, rng.randint(10, 40))
            assert wrong is None, f"seed {seed}: {wrong}"


def _larger(rng: random.Random, without: Mechanism | None = None) -> Model:
    keys = rng.randint(1, 3)
    jobs = [
        [Entry(rng.randrange(keys), rng.choice((RETRACT, 1, 1, 2, 3))) for _ in range(rng.randint(1, 4))]
        for _ in range(rng.randint(2, 8))
    ]
    return Model(jobs, rng.randint(2, 4), rng.randint(0, 6), without)
