"""docs/assumptions.md and docs/aws-rules.md are tables of modules: ``make snapshot`` writes them again."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from dynamodb_counters import _assumptions
from dynamodb_counters._timeline.tiers import DAY, HOUR, MINUTE
from simulation.aws.rule import Rule, rules
from simulation.mutations import MUTATIONS
from tests.unit import test_rooms

_PROJECT = Path(__file__).parents[2]
_TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end -->)", re.DOTALL)
_TESTS = {mutation.name: mutation.test for mutation in MUTATIONS}
_SPECIFIED = re.compile(r"`(\w+)` of the specification")


def _documented() -> Iterator[tuple[str, str]]:
    """Each name with the text below it."""
    body = ast.parse(Path(_assumptions.__file__).read_text()).body
    for node, below in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            assert isinstance(below, ast.Expr), node.target.id
            assert isinstance(below.value, ast.Constant), node.target.id
            yield node.target.id, " ".join(str(below.value.value).split())


def _shown(name: str) -> str:
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
        module.removeprefix("dynamodb_counters.").replace(".", "/")
        for module, path in test_rooms._modules("dynamodb_counters").items()
        if re.search(rf"\b{name}\b", path.read_text()) and not module.endswith("_assumptions")
    )


def _assumptions_table() -> str:
    rows = []
    for name, text in _documented():
        why = re.sub(r"(https://\S+)", r"[AWS](\1)", text)
        rows.append(f"| `{name}` | {_shown(name)} | {why} | {' '.join(f'`{one}`' for one in _relying(name))} |\n")
    return "| name | value | why | relied on by |\n|---|---|---|---|\n" + "".join(rows)


def _rule_row(rule: Rule) -> str:
    switch = ".".join(rule.switch.split(".")[-2:]) if "(" not in rule.switch else rule.switch.rpartition(".")[2]
    switch = f"`{switch}`" if switch else "checked at synth"
    test = _TESTS[rule.guard].rpartition("::")[2] if rule.guard else ""
    guard = f"*{rule.guard}*: `{test}`" if rule.guard else f"none: {rule.harmless}"
    return f"| {rule.name} | [{rule.sentence}]({rule.source}) | {switch} | {guard} |\n"


def _rules_table() -> str:
    return "| rule | as AWS says it | switch | without its guard |\n|---|---|---|---|\n" + "".join(
        map(_rule_row, rules())
    )


@pytest.mark.snapshot
@pytest.mark.parametrize(("page", "table"), [("assumptions", _assumptions_table), ("aws-rules", _rules_table)])
def test_the_page_is_the_table_of_its_modules(page: str, table: Callable[[], str]) -> None:
    path = _PROJECT / "docs" / f"{page}.md"
    text = path.read_text()
    written = _TABLE.sub(lambda _: table(), text)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(written)
        return
    assert text == written, "if that was meant: make snapshot"


def test_each_assumption_is_relied_on() -> None:
    derived = Path(_assumptions.__file__).read_text()
    unused = [name for name, _ in _documented() if not _relying(name) and derived.count(name) == 1]
    assert unused == []


def test_the_specification_has_the_constants_that_assumptions_name() -> None:
    modules = "".join(path.read_text() for path in (_PROJECT / "docs" / "spec").glob("*.tla"))
    named = _SPECIFIED.findall(Path(_assumptions.__file__).read_text())
    assert named
    assert [name for name in named if not re.search(rf"\b{name}\b", modules)] == []
