"""Every test that a page of the documentation names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_PROJECT = Path(__file__).parents[2]
_NAMED = {
    file: found
    for file in (_PROJECT / "docs").rglob("*.md")
    if (found := set(re.findall(r"`(?:[\w/]+\.py::)?(test_\w+)`", file.read_text())))
}


def _tests() -> set[str]:
    files = (_PROJECT / "tests").rglob("test_*.py")
    return {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("page", _NAMED, ids=lambda page: page.name)
def test_named_tests_exist(page: Path) -> None:
    assert _NAMED[page] - _tests() == set()


def test_pages_that_are_evidence_name_tests() -> None:
    assert len(_NAMED) >= 6
