"""The default name of a service is one that CloudWatch takes, and differs from every other."""

from __future__ import annotations

import re
from itertools import product

from aws_cdk import NestedStack, Stack, Stage

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator, ThresholdEvents
from tests.unit.infra.support import build, new_app

_CONSTRUCTS = (StreamAggregator, ThresholdEvents, EventIngest, CounterApi)
_REFUSED = ("Zähler", "Zöhler", "x" * 250 + "a", "x" * 250 + "b", "日本", "東京")


def test_a_stage_and_a_nested_stack_are_named_as_deployed() -> None:
    stack = Stack(Stage(new_app(), "Dev"), "Counters")
    nested = NestedStack(stack, "Nested")
    assert build(StreamAggregator, nested).service_name == "Dev-Counters/Nested/Aggregator"


def test_a_name_that_cloudwatch_would_refuse_is_made_one_it_takes(stack: Stack) -> None:
    names = [
        build(construct, stack, construct_id=f"{construct.__name__[0]}{name}", table=DedupCounterTable(stack, f"T{at}"))
        for at, (construct, name) in enumerate(product(_CONSTRUCTS, _REFUSED))
    ]
    made = [one.service_name for one in names]
    assert len({*made}) == len(_CONSTRUCTS) * len(_REFUSED)
    assert [name for name in made if not re.fullmatch(r"[\x20-\x7e]{1,255}", name)] == []


def test_a_name_is_as_long_as_cloudwatch_takes(stack: Stack) -> None:
    longest = "x" * (255 - len("Test/"))
    assert build(CounterApi, stack, construct_id=longest).service_name == f"Test/{longest}"
