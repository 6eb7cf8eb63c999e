"""Every test that a page of the documentation names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_PROJECT = Path(__file__).parents[2]
_PAGES = ("changing-declarations.md", "erasure.md", "packed-events.md", "quotas.md", "restore.md", "writing-events.md")


def _tests() -> set[str]:
    files = (_PROJECT / "tests").rglob("test_*.py")
    return {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("page", _PAGES)
def test_named_tests_exist(page: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", (_PROJECT / "docs" / page).read_text()))
    assert named
    assert named - _tests() == set()
