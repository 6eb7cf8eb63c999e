"""A snapshot of a stack changes when the stack does, not when the code that it packages does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from cdk_dynamodb_counters import StreamAggregator, _staging, runtime_code
from cdk_dynamodb_counters.testing import stable_template
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.support import build, new_stack, synthesized


@pytest.fixture
def staged_anew() -> Iterator[None]:
    _staging.stage.cache_clear()
    yield
    _staging.stage.cache_clear()


def some_stack() -> Stack:
    stack = new_stack()
    aggregator = build(StreamAggregator, stack)
    lambda_.LayerVersion(stack, "Layer", code=runtime_code(prefix="python"))
    lambda_.Alias(stack, "Live", alias_name="live", version=aggregator.function.current_version)
    return stack


def test_a_change_of_the_packaged_code_changes_nothing(
    staged_anew: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stack = some_stack()
    before, stable = synthesized(stack).to_json(), stable_template(stack)
    (tmp_path / "more.py").write_text("# more")
    files = [*_staging.runtime_files(), (tmp_path / "more.py", PurePath("dynamodb_counters", "more.py"))]
    monkeypatch.setattr(_staging, "runtime_files", lambda: files)
    _staging.stage.cache_clear()

    stack = some_stack()
    assert synthesized(stack).to_json() != before
    assert stable_template(stack) == stable


def test_a_change_of_the_stack_is_seen() -> None:
    one, more = new_stack(), new_stack()
    for stack in (one, more):
        sqs.Queue(stack, "Queue")
    sqs.Queue(more, "More")
    assert stable_template(one) != stable_template(more)


def test_declarations_are_in_words() -> None:
    [declared] = [
        found["Properties"]["Environment"]["Variables"]["DECLARATIONS"]
        for found in stable_template(some_stack())["Resources"].values()
        if "DECLARATIONS" in found["Properties"].get("Environment", {}).get("Variables", {})
    ]
    assert declared[0].startswith("Aggregate(name='views'")


def test_values_that_are_no_stack_are_refused() -> None:
    nothing: Any = None
    with pytest.raises(InvalidArgumentError, match=r"^invalid stack=None"):
        stable_template(nothing)
