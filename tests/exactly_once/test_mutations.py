"""Every mutation can be applied to the runtime as it is, so that none is passed over when the runtime changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from simulation.mutations import MUTATIONS, Mutation, mutate

RUNTIME = Path(__file__).parents[2] / "lambdas" / "dynamodb_counters"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_can_be_applied_and_is_still_python(mutation: Mutation, tmp_path: Path) -> None:
    copy = tmp_path / "lambdas" / "dynamodb_counters" / mutation.file
    copy.parent.mkdir(parents=True)
    shutil.copy(RUNTIME / mutation.file, copy)

    file, _, test = mutation.test.partition("::")
    assert f"def {test}" in (Path(__file__).parent / file).read_text()
    mutate(mutation, tmp_path)

    compile(copy.read_text(), str(copy), "exec")
