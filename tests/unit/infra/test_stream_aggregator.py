"""What an aggregator counts, emulates and meters, and for how long what Lambda gives up on is kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from aws_cdk import Duration, Stack

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, StreamAggregator
from dynamodb_counters._declarations import Counter
from dynamodb_counters._declarations.codec import described
from dynamodb_counters._http.resources import openapi
from tests.unit.infra.support import ROLLING, VIEW, VIEWS, build, new_stack, synthesized


def test_a_counter_is_all_that_a_deployment_needs_and_an_api_serves_it(stack: Stack) -> None:
    stock = Counter("stock", by=("shop", "sku"))
    table = build(DedupCounterTable, stack)
    build(StreamAggregator, stack, table=table, aggregates=[stock])
    build(CounterApi, stack, table=table, shown=[stock])
    functions = synthesized(stack).find_resources("AWS::Lambda::Function").values()
    assert {"Declarations": described([stock])} in [one.get("Metadata") for one in functions]
    assert openapi([stock])["paths"].keys() == {"/v1/stock", "/v1/batch"}


def test_the_order_of_declarations_does_not_show() -> None:
    assert list(described([VIEWS, ROLLING])) == list(described([ROLLING, VIEWS])) == ["rolling", "view", "views"]


def test_context_flag_for_emulators_adds_variables_and_leaves_out_what_they_do_not_send() -> None:
    plain, flagged = (
        synthesized(build(StreamAggregator, stack)).to_json()["Resources"]
        for stack in (new_stack(), new_stack(single_shard_stream="true"))
    )
    [name] = [name for name, resource in flagged.items() if resource["Type"] == "AWS::Lambda::Function"]
    variables = flagged[name]["Properties"]["Environment"]["Variables"]
    assert variables.pop("SINGLE_SHARD") == "true"
    assert flagged == {
        name: resource for name, resource in plain.items() if "Deployed" not in name and "Watch" not in name
    }


def kept_days(retentions: list[timedelta | None], **arguments: Any) -> int:
    """How many days the bucket of a table with such events keeps objects."""
    aggregator = build(StreamAggregator, new_stack(), aggregates=[], **arguments)
    for number, retention in enumerate(retentions):
        # Declared after the bucket was built.
        event = replace(VIEW, name=f"event{number}", sk=f"E{number}#{{time}}", retention=retention)
        aggregator.add_aggregate(replace(VIEWS, name=f"views{number}", sk=f"S{number}", source=event))
    return int(aggregator._kept_days(arguments.get("quarantine_retention", Duration.days(90))))


def test_the_bucket_keeps_objects_as_long_as_events_for_a_week_at_least_and_a_month_at_most() -> None:
    days = timedelta(days=1)
    assert kept_days([None]) == 30
    assert kept_days([None], quarantine_retention=Duration.days(20)) == 20
    assert kept_days([100 * days, 20.5 * days, None]) == 21
    assert kept_days([days, 30 * days]) == 7
    assert kept_days([None], quarantine_retention=Duration.days(2)) == 7


def test_metrics_take_what_those_of_cdk_take(stack: Stack, counters: DedupCounterTable) -> None:
    aggregator = build(StreamAggregator, stack, table=counters, service_name="blog")
    late = aggregator.metric("LateEvents", period=Duration.minutes(1), statistic="Maximum")
    assert (late.metric_name, late.namespace, late.dimensions) == (
        "LateEvents",
        "DynamoDBCounters",
        {"service": "blog"},
    )
    assert (late.period.to_seconds(), late.statistic) == (60, "Maximum")
    assert aggregator.metric_iterator_age(statistic="p99").statistic == "p99"
    assert aggregator.metric("Records").period.to_seconds() == 300
    with pytest.raises(TypeError, match="statistik"):
        aggregator.metric("LateEvents", statistik="Maximum")
