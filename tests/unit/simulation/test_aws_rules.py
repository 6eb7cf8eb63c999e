"""docs/aws-rules.md is the table of `simulation.aws`: ``make snapshot`` writes it again."""

from __future__ import annotations

import inspect
import os
import pkgutil
import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from simulation.aws.rule import Rule, rules
from simulation.mutations import MUTATIONS

_PROJECT: Final = Path(__file__).parents[3]
_PAGE: Final = _PROJECT / "docs" / "aws-rules.md"
_TABLE: Final = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end -->)", re.DOTALL)
_TESTS: Final = {mutation.name: mutation.test for mutation in MUTATIONS}
_SWITCH: Final = re.compile(r"([\w.]+?)(?:\((\w+)\))?")


def _row(rule: Rule) -> str:
    switch = ".".join(rule.switch.split(".")[-2:]) if "(" not in rule.switch else rule.switch.rpartition(".")[2]
    test = _TESTS[rule.guard].rpartition("::")[2] if rule.guard else ""
    guard = f"*{rule.guard}*: `{test}`" if rule.guard else f"none: {rule.harmless}"
    return f"| {rule.name} | [{rule.sentence}]({rule.source}) | `{switch}` | {guard} |\n"


@pytest.mark.snapshot
def test_the_page_of_aws_rules_is_the_table_of_their_modules() -> None:
    table = "| rule | as AWS says it | switch | without its guard |\n|---|---|---|---|\n" + "".join(map(_row, rules()))
    page = _PAGE.read_text()
    written = _TABLE.sub(lambda _: table, page)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        _PAGE.write_text(written)
        return
    assert page == written, "if that was meant: make snapshot"


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_a_rule_has_a_guard_that_a_mutation_takes_away_or_needs_none(rule: Rule) -> None:
    assert bool(rule.guard) != bool(rule.harmless)
    assert not rule.guard or rule.guard in _TESTS


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_the_switch_of_a_rule_is_part_of_a_simulator(rule: Rule) -> None:
    found = _SWITCH.fullmatch(rule.switch)
    assert found
    switched = pkgutil.resolve_name(found[1])
    assert found[2] is None or found[2] in inspect.signature(switched).parameters


def test_each_rule_has_a_name_of_its_own() -> None:
    assert [name for name, times in Counter(rule.name for rule in rules()).items() if times > 1] == []
