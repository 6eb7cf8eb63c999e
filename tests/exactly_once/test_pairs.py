"""Schedules in which all features run on one table at once: every pair of them is exact, whatever goes wrong."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.night import NIGHT
from simulation.pairs import features, operators, runs
from simulation.pairs.__main__ import main
from simulation.pairs.backend import LocalBackend
from simulation.pairs.engine import NEAR
from simulation.pairs.schedule import PairSchedule, check

SEEDS = (1, 3, 12, 38, 46, 56, *range(60, 60 + 5 * NIGHT))
"""By day those that bring about what is rare."""
PAGE = Path(__file__).parents[2] / "docs" / "pairs.md"
OFTEN = {features.QUARANTINED: 2, features.REDRIVEN: 1, features.BACKFILLED: 5, features.VERIFIED: 15}
OFTEN |= {features.ONCE: 10, features.EXPIRED: 5, features.SPLIT: 5, features.ZOMBIES: 5}
OFTEN |= {operators.COUNTED: 10, features.ERASED_KEPT: 3, features.ERASED_BACK: 1}
OFTEN |= {features.REDEFINED: 3, features.ADDED: 1, features.REPAIRED: 2, features.RESTORED: 3}
OFTEN |= {features.PAGED: 10, features.PAGE_SPLIT: 5}
OFTEN |= {runs.LEFT: 1, runs.RESUMED: 1, runs.BLOCKED: 1, runs.LOST: 1, NEAR: 1}
"""How often twenty schedules come across it, about; half of it is asked for."""


def test_every_pair_of_features_is_exact_whatever_goes_wrong() -> None:
    happened: Counter[str] = Counter()
    for seed in SEEDS:
        outcome = check(seed)
        happened += outcome.happened + outcome.reached
    often = {name: times * len(SEEDS) // 40 for name, times in OFTEN.items()}
    assert {name: happened[name] for name, times in often.items() if happened[name] < times} == {}


@pytest.mark.night
def test_a_seed_decides_about_everything() -> None:
    assert PairSchedule(1).run() == PairSchedule(1).run()


@pytest.mark.night
def test_pairs_are_exact_on_dynamodb_local(dynamodb_local_engine: DynamoDBLocal) -> None:
    check(0, partial(LocalBackend, dynamodb_local_engine), "dynamodb-local")


def test_no_page_is_written_with_an_empty_cell_that_no_reason_explains(tmp_path: Path) -> None:
    page = tmp_path / "pairs.md"
    assert main(["--count", "1", "--page", str(page)]) == 1
    assert not page.exists()
    covered = dict.fromkeys(combinations_with_replacement(features.FEATURES, 2), 1)
    assert "*1" in features.page(covered, "memory", 0, 2000)
    del covered[missing := (features.ERASED_KEPT, features.SPLIT)]
    assert features.uncovered(covered) == [missing]


def test_the_page_has_no_empty_cell() -> None:
    rows = re.findall(r"^\| \d+ \| ([^|]+) \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    assert [name for name, _ in rows] == list(features.FEATURES)
    cells = [[cell.strip() for cell in row.split("|")] for _, row in rows]
    assert [row[: number + 1].count("") for number, row in enumerate(cells)] == [0] * len(features.FEATURES)
    assert [name for (name, _), row in zip(rows, cells, strict=True) if "0" in row] == []
