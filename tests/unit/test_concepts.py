"""The concepts of the commit path that docs/architecture.md lists are names of the runtime."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

_PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
_SECTION = _PAGE.read_text().split("## Concepts of the commit path")[1].split("\n## ")[0]
_NAMES = re.findall(r"^\| [^|]+ \| `([^`]+)` \|", _SECTION, re.MULTILINE)


def test_the_commit_path_has_35_concepts_at_most() -> None:
    assert 30 <= len(_NAMES) <= 35


@pytest.mark.parametrize("name", _NAMES)
def test_a_concept_is_a_name_of_the_runtime(name: str) -> None:
    room, module, *attributes = name.split(".")
    found = reduce(getattr, attributes, import_module(f"dynamodb_counters.{room}.{module}"))
    assert found is not None
