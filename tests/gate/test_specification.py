"""Every template fits CloudFormation's specification, as cfn-lint ships it; and the templates show every argument."""

from __future__ import annotations

import inspect
import json
from typing import Any, Final

import pytest

from tests.gate.templates import CONSTRUCTS, GIVEN, names, templates

IGNORED: Final = {
    "W3005": "CDK makes a function depend on both its role and the role's policy; the redundancy is harmless.",
}
_ELSEWHERE: Final = {
    ("DedupCounterTable", "table"): "excludes all others; test_dedup_counter_table",
    ("EventIngest", "http_api"): "CountersBlog, whose API serves both",
}
"""Arguments that no build gives, and the template that shows them."""


def lint(document: dict[str, Any]) -> list[str]:
    cfnlint = pytest.importorskip("cfnlint.api", reason="`make nightly` installs it")
    config = cfnlint.ManualArgs(regions=["us-east-1"], ignore_checks=list(IGNORED))
    return [str(match) for match in cfnlint.lint(json.dumps(document), config=config)]


@pytest.mark.night
@pytest.mark.parametrize("template", names())
def test_a_template_fits_the_specification(template: str) -> None:
    assert lint(templates()[template].document) == []


def test_the_templates_show_every_argument() -> None:
    assert templates()
    wanted = {
        (construct.__name__, name)
        for construct in CONSTRUCTS
        for name, parameter in inspect.signature(construct.__init__).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    missing = {(construct, name) for construct, name in wanted if name not in GIVEN[construct]}
    assert missing == {*_ELSEWHERE}
