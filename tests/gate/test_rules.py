"""Nothing that we deploy breaks a rule of AWS."""

from __future__ import annotations

from typing import Final

import pytest

from examples.stacks import stacks
from tests.gate.function_rules import variables
from tests.gate.rules import RULES
from tests.gate.template import Template
from tests.gate.templates import names, templates
from tests.unit.infra.support import new_app, synthesized

CHOSEN: Final = {
    ("table_everything", "what_nothing_else_stores_is_retained"): "removal_policy=DESTROY asks for it",
}
"""Findings that the user of a construct has asked for."""


@pytest.mark.parametrize("template", names())
def test_a_template_keeps_the_rules(template: str) -> None:
    kept = [rule for rule in RULES.values() if (template, rule.name) not in CHOSEN]
    assert [finding for rule in kept for finding in rule.findings(templates()[template])] == []


@pytest.mark.parametrize(("template", "rule"), CHOSEN)
def test_an_exception_is_needed(template: str, rule: str) -> None:
    assert RULES[rule].findings(templates()[template])


def test_deployments_in_one_account_share_no_metric() -> None:
    """https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html says what one is."""
    stack = stacks()["CountersBlog"]
    services: list[set[str]] = []
    for name in ("Dev", "Prod"):
        template = Template(name, dict(synthesized(stack(new_app(), name)).to_json()))
        functions = template.each("Lambda::Function")
        services.append({variables(function)["POWERTOOLS_SERVICE_NAME"] for function in functions})
    dev, prod = services
    assert dev
    assert dev.isdisjoint(prod)
