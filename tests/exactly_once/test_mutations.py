"""Every mutation can be applied to the runtime as it is, so that none is passed over when the runtime changes."""

from __future__ import annotations

import shutil
from pathlib import Path

from simulation.mutations import GUARDS, MUTATIONS, RUNTIME, mutate
from simulation.mutations.generated import generate

ROOT = Path(__file__).parents[2]


def test_every_mutation_can_be_applied_and_is_still_python(tmp_path: Path) -> None:
    wrong = []
    for mutation in MUTATIONS:
        copy = tmp_path / RUNTIME / mutation.file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / RUNTIME / mutation.file, copy)
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


def test_every_guard_is_a_change_that_is_made_of_the_runtime_as_it_is() -> None:
    missing = set(GUARDS)
    for file in {name.partition(" ")[0] for name in GUARDS}:
        source = (ROOT / RUNTIME / file).read_text()
        for mutation in generate(file, source):
            if mutation.name in GUARDS:
                compile(mutation.apply(source), file, "exec")
                missing.discard(mutation.name)
    assert missing == set()


def test_a_function_is_changed_in_each_of_its_places() -> None:
    """Each change has a name of its own, and leaves the rest of the source as it is."""
    source = """class A:
    def f(self, é, b=1):
        '''Docstring'''
        if not é and b < 2:
            raise ValueError(f'{b + 1}')
        self.x = [1 for c in max(é, b) if c]
"""
    changed = {mutation.change: mutation.apply(source) for mutation in generate("a.py", source)}
    assert sorted(changed) == [
        *("1 → 2", "2 → 3", "b < 2 → b <= 2", "c → False", "c → True", "max(é, b) → b", "max(é, b) → é"),
        *("not é and b < 2 → False", "not é and b < 2 → True", "not é and b < 2 → not é or b < 2", "not é → é"),
        *("without b", "without b < 2", "without not é", "without raise ValueError(f'{b + 1}')"),
        "without self.x = [1 for c in max(é, b) if c]",
    ]
    assert changed["without not é"] == source.replace("not é and b < 2", "(b < 2)")
    assert changed["b < 2 → b <= 2"] == source.replace("b < 2", "(b <= 2)")
    assert changed["c → False"] == source.replace("if c]", "if (False)]")
    assert changed["without raise ValueError(f'{b + 1}')"] == source.replace("raise ValueError(f'{b + 1}')", "pass")
