"""Each construct with its defaults and with every argument: templates change only on purpose, and are valid.

`make snapshot` rewrites the files; review them like code.
"""

from __future__ import annotations

import inspect
import json
import os
from pathlib import Path, PurePath
from typing import Final

import pytest
from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_

from cdk_dynamodb_counters import StreamAggregator, _staging, runtime_code
from cdk_dynamodb_counters.testing import stable_template
from tests.gate.templates import BUILDS, CONSTRUCTS, GIVEN, built, names, templates
from tests.unit.infra.support import PROJECT, build, new_stack, synthesized

SNAPSHOTS = PROJECT / "tests" / "snapshots"
IGNORED: Final = {
    "W3005": "CDK makes a function depend on both its role and the role's policy; the redundancy is harmless."
}
_ELSEWHERE: Final = {
    ("DedupCounterTable", "table"): "excludes all others; test_dedup_counter_table",
    ("EventIngest", "http_api"): "CountersBlog, whose API serves both",
}
"""Arguments that no build gives, and the template that shows them."""


@pytest.mark.snapshot
@pytest.mark.parametrize("name", BUILDS)
def test_template_is_as_reviewed(name: str) -> None:
    text = json.dumps(stable_template(built(name)), indent=2) + "\n"
    path = SNAPSHOTS / f"{name}.json"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert path.exists(), f"no {path.name} yet: make snapshot"
    assert json.loads(text) == json.loads(path.read_text()), "if you meant this change: make snapshot"


def some_stack() -> Stack:
    _staging.stage.cache_clear()
    aggregator = build(StreamAggregator, new_stack())
    stack = Stack.of(aggregator)
    lambda_.LayerVersion(stack, "Layer", code=runtime_code(prefix="python"))
    lambda_.Alias(stack, "Live", alias_name="live", version=aggregator.function.current_version)
    return stack


def test_a_change_of_the_packaged_code_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stack = some_stack()
    before, stable = synthesized(stack).to_json(), stable_template(stack)
    (tmp_path / "more.py").write_text("# more")
    files = [*_staging.runtime_files(), (tmp_path / "more.py", PurePath("dynamodb_counters", "more.py"))]
    with monkeypatch.context() as patch:
        patch.setattr(_staging, "runtime_files", lambda: files)
        stack = some_stack()
    _staging.stage.cache_clear()
    assert synthesized(stack).to_json() != before
    assert stable_template(stack) == stable


@pytest.mark.night
@pytest.mark.parametrize("template", names())
def test_a_template_fits_the_specification(template: str) -> None:
    """CloudFormation's, as cfn-lint ships it."""
    cfnlint = pytest.importorskip("cfnlint.api", reason="`make nightly` installs it")
    config = cfnlint.ManualArgs(regions=["us-east-1"], ignore_checks=list(IGNORED))
    assert cfnlint.lint(json.dumps(templates()[template].document), config=config) == []


def test_the_templates_show_every_argument() -> None:
    assert templates()
    arguments = {
        (construct.__name__, name)
        for construct in CONSTRUCTS
        for name, parameter in inspect.signature(construct.__init__).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    missing = {(construct, name) for construct, name in arguments if name not in GIVEN[construct]}
    assert missing == {*_ELSEWHERE}
