"""Every mutation can be applied to the runtime as it is, so that none is passed over when the runtime changes."""

from __future__ import annotations

import shutil
from pathlib import Path

from simulation.mutations import MUTATIONS, mutate

RUNTIME = Path(__file__).parents[2] / "lambdas" / "dynamodb_counters"


def test_every_mutation_can_be_applied_and_is_still_python(tmp_path: Path) -> None:
    wrong = []
    for mutation in MUTATIONS:
        copy = tmp_path / "lambdas" / "dynamodb_counters" / mutation.file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(RUNTIME / mutation.file, copy)
        try:
            mutate(mutation, tmp_path)
            compile(copy.read_text(), str(copy), "exec")
        except (LookupError, SyntaxError) as error:
            wrong.append(f"{mutation.name}: {error}")
    assert wrong == []


def test_the_test_of_every_mutation_is_there() -> None:
    missing = []
    for mutation in MUTATIONS:
        file, _, test = mutation.test.partition("::")
        if f"def {test}" not in (Path(__file__).parent / file).read_text():
            missing.append(f"{mutation.name}: {mutation.test}")
    assert missing == []
