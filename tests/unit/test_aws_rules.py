"""docs/aws-rules.md is the table of `simulation.aws`: ``make snapshot`` writes it again."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest

from simulation.aws.rule import Rule, rules
from simulation.mutations import MUTATIONS

_PROJECT: Final = Path(__file__).parents[2]
_PAGE: Final = _PROJECT / "docs" / "aws-rules.md"
_TABLE: Final = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end -->)", re.DOTALL)
_TESTS: Final = {mutation.name: mutation.test for mutation in MUTATIONS}


def _row(rule: Rule) -> str:
    switch = ".".join(rule.switch.split(".")[-2:]) if "(" not in rule.switch else rule.switch.rpartition(".")[2]
    switch = f"`{switch}`" if switch else "checked at synth"
    test = _TESTS[rule.guard].rpartition("::")[2] if rule.guard else ""
    guard = f"*{rule.guard}*: `{test}`" if rule.guard else f"none: {rule.harmless}"
    return f"| {rule.name} | [{rule.sentence}]({rule.source}) | {switch} | {guard} |\n"


@pytest.mark.snapshot
def test_the_page_of_aws_rules_is_the_table_of_their_modules() -> None:
    table = "| rule | as AWS says it | switch | without its guard |\n|---|---|---|---|\n" + "".join(map(_row, rules()))
    page = _PAGE.read_text()
    written = _TABLE.sub(lambda _: table, page)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        _PAGE.write_text(written)
        return
    assert page == written, "if that was meant: make snapshot"
