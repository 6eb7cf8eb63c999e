"""docs/engines.md has the table of `_assumptions`: ``make snapshot`` writes it again."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from dynamodb_counters import _assumptions
from dynamodb_counters._tiers import DAY, HOUR, MINUTE
from tests.unit import test_rooms

_PROJECT = Path(__file__).parents[2]
_PAGE = _PROJECT / "docs" / "engines.md"
_TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end -->)", re.DOTALL)
_SPECIFIED = re.compile(r"`(\w+)` of the specification")


def _documented() -> Iterator[tuple[str, str]]:
    """Each name with the text below it."""
    body = ast.parse(Path(_assumptions.__file__).read_text()).body
    for node, below in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            assert isinstance(below, ast.Expr), node.target.id
            assert isinstance(below.value, ast.Constant), node.target.id
            yield node.target.id, " ".join(str(below.value.value).split())


def _value(name: str) -> str:
    value = getattr(_assumptions, name)
    if isinstance(value, frozenset | tuple):
        return f"{len(value)} codes"
    if name.startswith(("MOST_", "TRIES")):
        return f"{value}"
    parts = []
    for unit, seconds in (("d", DAY), ("h", HOUR), ("min", MINUTE)):
        number, value = divmod(value, seconds)
        parts += [f"{number:g} {unit}"] if number else []
    return " ".join([*parts, *([f"{value:g} s"] if value else [])])


def _relying(name: str) -> list[str]:
    return sorted(
        module.removeprefix("dynamodb_counters.").removeprefix("counters_lambda.").replace(".", "/")
        for package in test_rooms._RUNTIME
        for module, path in test_rooms._modules(package).items()
        if re.search(rf"\b{name}\b", path.read_text()) and not module.endswith("_assumptions")
    )


def _table() -> str:
    rows = []
    for name, text in _documented():
        why = re.sub(r"(https://\S+)", r"[AWS](\1)", text)
        rows.append(f"| `{name}` | {_value(name)} | {why} | {' '.join(f'`{module}`' for module in _relying(name))} |\n")
    return "| name | value | why | relied on by |\n|---|---|---|---|\n" + "".join(rows)


@pytest.mark.snapshot
def test_the_table_of_assumptions_is_the_module_of_assumptions() -> None:
    page = _PAGE.read_text()
    text = _TABLE.sub(lambda _: _table(), page)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        _PAGE.write_text(text)
        return
    assert page == text, "if that was meant: make snapshot"


def test_each_assumption_is_relied_on() -> None:
    derived = Path(_assumptions.__file__).read_text()
    unused = [name for name, _ in _documented() if not _relying(name) and derived.count(name) == 1]
    assert unused == []


def test_the_specification_has_the_constants_that_assumptions_name() -> None:
    modules = "".join(path.read_text() for path in (_PROJECT / "docs" / "spec").glob("*.tla"))
    named = _SPECIFIED.findall(Path(_assumptions.__file__).read_text())
    assert named
    assert [name for name in named if not re.search(rf"\b{name}\b", modules)] == []
