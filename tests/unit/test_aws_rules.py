"""Rules of AWS in docs/engines.md: each has a switch in a simulator, and a guard that a mutation takes away."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from simulation.mutations import MUTATIONS

_PROJECT: Final = Path(__file__).parents[2]
_ROWS: Final = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in (_PROJECT / "docs" / "engines.md").read_text().partition("## Rules of AWS")[2].splitlines()
    if line.startswith("| ")
][1:]
_TESTS: Final = {mutation.name: mutation.test.rpartition("::")[2] for mutation in MUTATIONS}
_SIMULATORS: Final = (*(_PROJECT / "simulation").rglob("*.py"), _PROJECT / "tests" / "exactly_once" / "notices.py")
_SOURCES: Final = [path.read_text() for path in _SIMULATORS]


def test_the_rules_are_sorted() -> None:
    assert len(_ROWS) > 20
    assert [row[0] for row in _ROWS] == sorted(row[0] for row in _ROWS)


@pytest.mark.parametrize(("sentence", "switch", "guard"), [row[1:] for row in _ROWS], ids=[row[0] for row in _ROWS])
def test_a_rule_has_a_sentence_of_aws_a_switch_and_a_guard(sentence: str, switch: str, guard: str) -> None:
    assert re.fullmatch(r"\[[A-Z0-9].*\.\]\(https://docs\.aws\.amazon\.com/\S+\)", sentence)
    if switch != "checked at synth":
        owner, argument, attribute = re.fullmatch(r"`(\w+)(?:\((\w+)\)|\.(\w+))`", switch).groups()  # type: ignore[union-attr]
        owners = [text for text in _SOURCES if re.search(rf"^class {owner}\b", text, re.MULTILINE)]
        assert any(re.search(rf"\b{argument or attribute}\b *[:=(]", text) for text in owners)
    if not guard.startswith("none: "):
        name, test = re.fullmatch(r"\*(.+)\*: `(.+)`", guard).groups()  # type: ignore[union-attr]
        assert _TESTS[name] == test
