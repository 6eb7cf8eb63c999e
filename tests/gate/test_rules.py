"""Nothing that we deploy breaks a rule of AWS."""

from __future__ import annotations

from typing import Final

import pytest

from tests.gate.rules import RULES
from tests.gate.templates import names, templates

CHOSEN: Final = {
    ("table_everything", "what_nothing_else_stores_is_retained"): "removal_policy=DESTROY asks for it",
}
"""What the user of a construct has asked for."""


@pytest.mark.parametrize("template", names())
def test_a_template_keeps_the_rules(template: str) -> None:
    kept = [rule for rule in RULES.values() if (template, rule.name) not in CHOSEN]
    assert [finding for rule in kept for finding in rule.findings(templates()[template])] == []


@pytest.mark.parametrize(("template", "rule"), CHOSEN)
def test_an_exception_is_needed(template: str, rule: str) -> None:
    assert RULES[rule].findings(templates()[template])
