"""Alarms fire while something is wrong, and say what to do: CloudWatch's evaluation of the templates' alarms."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import pytest

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator
from tests.unit.infra.support import PROJECT, build, each, new_stack, synthesized

_BREACHES: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
}


def alarms(*, monitoring: bool) -> list[dict[str, Any]]:
    stack = new_stack()
    counters = build(DedupCounterTable, stack)
    for construct in (StreamAggregator, EventIngest, CounterApi):
        build(construct, stack, table=counters, monitoring=monitoring)
    return each(synthesized(stack), "AWS::CloudWatch::Alarm")


@pytest.fixture(scope="module")
def always() -> dict[str, dict[str, Any]]:
    """The alarms without monitoring, by metric."""
    return {alarm["MetricName"]: alarm for alarm in alarms(monitoring=False)}


def fires(alarm: dict[str, Any], hours: list[float | None]) -> bool:
    """Whether an alarm is on after hours with one value, or none, per period, the newest last.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
    """
    values = [value for value in hours for _ in range(3600 // alarm["Period"])]
    periods: int = alarm["EvaluationPeriods"]
    needed: int = alarm.get("DatapointsToAlarm", periods)
    seen = ([None] * periods + values)[-periods:]
    missing, breaches = alarm["TreatMissingData"] == "breaching", _BREACHES[alarm["ComparisonOperator"]]
    breaching: int = sum(missing if value is None else breaches(value, alarm["Threshold"]) for value in seen)
    return breaching >= needed


def test_a_mapping_that_stops_polling_is_noticed(always: dict[str, dict[str, Any]]) -> None:
    silent: list[float | None] = [None]
    assert [name for name, alarm in always.items() if fires(alarm, silent)] == ["PolledEventCount"]
    polls = always["PolledEventCount"]
    assert polls["Statistic"] == "SampleCount", "an idle mapping polls nothing, and says so"
    assert not fires(polls, [5])


@pytest.mark.parametrize("metric", ["Quarantined", "OnFailureDestinationDeliveredEventCount"])
def test_an_alarm_stays_on_while_what_arrived_may_be_waiting(metric: str, always: dict[str, dict[str, Any]]) -> None:
    alarm = always[metric]
    assert fires(alarm, [0, 1])
    assert fires(alarm, [1, *[0] * 24, *[None] * 24])
    assert not fires(alarm, [0, 0, None])
    assert alarm["Period"] * alarm["EvaluationPeriods"] <= 7 * 86_400


def test_events_that_were_taken_but_not_accepted_raise_an_alarm_without_monitoring(
    always: dict[str, dict[str, Any]],
) -> None:
    depth, age = always["ApproximateNumberOfMessagesVisible"], always["ApproximateAgeOfOldestMessage"]
    assert fires(depth, [1])
    assert fires(age, [900])


def test_every_alarm_links_to_its_section_of_the_runbook() -> None:
    page = (PROJECT / "docs" / "monitoring.md").read_text()
    runbook = dict(re.findall(r"^### (\w+)\n\n(.+)", page, re.MULTILINE))
    anchors = {name.lower() for name in runbook}
    linked = {
        alarm["AlarmDescription"].partition(" Runbook: docs/monitoring.md#")[2] for alarm in alarms(monitoring=True)
    }
    assert linked == anchors
