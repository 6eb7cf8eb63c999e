"""Declaring and folding needs no AWS library: it is imported when a table is first touched, and never the CDK."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dynamodb_counters
from tests.unit import test_rooms

_PURE = [
    module.removesuffix(".__init__")
    for module in test_rooms._modules("dynamodb_counters")
    if test_rooms._room(module) in (*test_rooms._PURE, "__init__")
]
_DECLARING = "Aggregate, Attr, Condition, Count, CountersError, Event, Group, InvalidArgumentError, Sum, Window"


def _loaded(statement: str, modules: str) -> set[str]:
    seen = f"print(*(name for name in {modules!r}.split() if name in sys.modules))"
    script = f"import sys; sys.path[:0] = {sys.path!r}; {statement}; {seen}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_no_pure_module_loads_an_aws_library() -> None:
    assert _loaded(f"import {', '.join(_PURE)}", "boto3 botocore aws_cdk jsii aws_lambda_powertools") == set()


def test_declaring_loads_no_aws_library() -> None:
    assert _loaded(f"from dynamodb_counters import {_DECLARING}", "boto3 botocore aws_cdk jsii") == set()


def test_the_runtime_never_loads_the_cdk() -> None:
    statement = "import dynamodb_counters.handlers.aggregator, dynamodb_counters._counters"

    assert _loaded(statement, "aws_cdk jsii cdk_dynamodb_counters boto3 botocore") == {"botocore"}


@pytest.mark.parametrize("handler", ["notifier", "ingest_queue", "ingest_http"])
def test_a_function_that_counts_nothing_loads_no_fold(handler: str) -> None:
    statement = (
        f"import os; os.environ['AWS_DEFAULT_REGION'] = 'us-east-1'; import dynamodb_counters.handlers.{handler}"
    )

    assert _loaded(statement, "dynamodb_counters._fold.fold dynamodb_counters._fold.updates") == set()


def test_a_cold_start_looks_for_no_garbage() -> None:
    count = "sum(each['collections'] for each in __import__('gc').get_stats())"
    script = f"""
import sys; sys.path[:0] = {sys.path!r}
before = {count}
import dynamodb_counters.handlers.aggregator
print({count} - before)
"""
    assert int(subprocess.check_output([sys.executable, "-c", script])) <= 20


@pytest.mark.parametrize("name", dynamodb_counters.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    public = getattr(dynamodb_counters, name)
    assert getattr(public, "__name__", name) == name
    assert name in dir(dynamodb_counters)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = dynamodb_counters.Nothing  # type: ignore[attr-defined]
