"""Every mutation that `make mutations` tries is one of the runtime as it stands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.harness.mutations import MUTATIONS, Mutation, mutate

_RUNTIME = Path(__file__).parents[2] / "lambdas/dynamodb_counters"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_changes_the_runtime(mutation: Mutation, tmp_path: Path) -> None:
    copy = tmp_path / "lambdas/dynamodb_counters" / mutation.file
    copy.parent.mkdir(parents=True)
    shutil.copy(_RUNTIME / mutation.file, copy)
    mutate(mutation, tmp_path)
    compile(copy.read_text(), mutation.file, "exec")
