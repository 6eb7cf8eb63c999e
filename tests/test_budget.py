"""Lines are a cost: each folder has a budget, which every change keeps or says in its commit why it raises it."""

from __future__ import annotations

from pathlib import Path

import pytest

_PROJECT = Path(__file__).parents[1]
BUDGETS = {
    "lambdas/**/*.py": 17_016,
    "infra/**/*.py": 3_350,
    "simulation/**/*.py": 11_605,
    "tests/**/*.py": 27_410,
    "benchmarks/**/*.py": 3_110,
    "demo/**/*.py": 2_500,
    "scripts/**/*.py": 280,
    "docs/**/*.md": 5_040,
}


@pytest.mark.parametrize("files", BUDGETS)
def test_a_folder_keeps_its_budget(files: str) -> None:
    lines = sum(path.read_bytes().count(b"\n") for path in _PROJECT.glob(files))
    assert lines <= BUDGETS[files]
