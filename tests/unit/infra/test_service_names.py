"""The default name of a service is one that CloudWatch takes, and differs from every other."""

from __future__ import annotations

import re

from aws_cdk import NestedStack, Stack, Stage

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, StreamAggregator
from tests.unit.infra.support import build, new_app

_LONGEST = "x" * (255 - len("Test/"))
_REFUSED = ("Zähler", "Zöhler", "x" * 250 + "a", "x" * 250 + "b", "日本", "東京")


def test_a_stage_and_a_nested_stack_are_named_as_deployed() -> None:
    stack = Stack(Stage(new_app(), "Dev"), "Counters")
    nested = NestedStack(stack, "Nested")
    assert build(StreamAggregator, nested).service_name == "Dev-Counters/Nested/Aggregator"


def test_a_name_that_cloudwatch_would_refuse_is_made_one_it_takes(stack: Stack, counters: DedupCounterTable) -> None:
    made = [build(CounterApi, stack, construct_id=name, table=counters).service_name for name in (*_REFUSED, _LONGEST)]
    assert made.pop() == f"Test/{_LONGEST}"
    assert len({*made}) == len(_REFUSED)
    assert [name for name in made if not re.fullmatch(r"[\x20-\x7e]{1,255}", name)] == []
