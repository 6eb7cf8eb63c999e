"""Thresholds reach the aggregator, crossings EventBridge, and rules only what can happen."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from aws_cdk import Stack

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator, ThresholdEvents
from dynamodb_counters import Threshold
from dynamodb_counters._declarations.codec import decode
from tests.unit.infra.support import (
    POPULAR,
    SITE,
    VIEWS,
    build,
    each,
    synthesized,
)

LOUD = Threshold("busy", SITE, at=[Decimal("0.8"), 1], direction="both", once=True)


def functions(stack: Stack) -> dict[str, dict[str, Any]]:
    return {one["Handler"].split(".")[-2]: one for one in each(synthesized(stack), "AWS::Lambda::Function")}


@pytest.mark.parametrize("is_first", [True, False])
def test_the_aggregator_knows_the_thresholds_whichever_comes_first(stack: Stack, is_first: bool) -> None:
    counters = build(DedupCounterTable, stack)
    steps: list[Callable[[], object]] = [
        lambda: build(ThresholdEvents, stack, table=counters, thresholds=[LOUD, POPULAR]),
        lambda: build(StreamAggregator, stack, table=counters, aggregates=[VIEWS, SITE]),
    ]
    for step in steps if is_first else reversed(steps):
        step()
    variables = functions(stack)["aggregator"]["Environment"]["Variables"]
    found = {one.name: getattr(one, "_thresholds", ()) for one in decode(variables["DECLARATIONS"])}
    assert {name: [one.name for one in armed] for name, armed in found.items()} == {
        "views": ["popular"],
        "site": ["busy"],
    }


def rule(stack: Stack) -> dict[str, Any]:
    """The rule for crossings."""
    told = (one for one in each(synthesized(stack), "AWS::Events::Rule") if "EventPattern" in one)
    [found] = [one for one in told if one["EventPattern"]["detail-type"] == ["Threshold Crossed"]]
    return found


@pytest.mark.parametrize(
    ("arguments", "detail"),
    [
        ({}, None),
        ({"threshold": POPULAR}, {"threshold": ["popular"]}),
        ({"level": 100}, {"level": [{"numeric": ["=", 100]}]}),
        (
            {"threshold": LOUD, "level": Decimal("0.8"), "direction": "down"},
            {"threshold": ["busy"], "level": [{"numeric": ["=", 0.8]}], "direction": ["down"]},
        ),
        ({"level": Decimal("1.0")}, {"level": [{"numeric": ["=", 1]}]}),
    ],
    ids=["all", "a threshold", "a level", "a level downwards", "a whole level"],
)
def test_a_rule_matches_crossings_of_this_table(stack: Stack, arguments: dict[str, Any], detail: object) -> None:
    counters = build(DedupCounterTable, stack)
    build(StreamAggregator, stack, table=counters, aggregates=[VIEWS, SITE])
    build(ThresholdEvents, stack, table=counters, thresholds=[POPULAR, LOUD]).on_crossed("Rule", **arguments)
    pattern = rule(stack)["EventPattern"]
    assert (pattern["source"], pattern["detail-type"]) == (["dynamodb-counters"], ["Threshold Crossed"])
    [[table, attribute]] = [one["Fn::GetAtt"] for one in pattern["resources"]]
    assert (table[:13], attribute) == ("CountersTable", "Arn")
    assert pattern.get("detail") == detail
