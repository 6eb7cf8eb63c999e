"""Alarms fire while something is wrong, and say what to do; so do those of a scheduled verification."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import Duration

from cdk_dynamodb_counters import DedupCounterTable, EventIngest, StreamAggregator, ThresholdEvents
from dynamodb_counters import Aggregate, Count, Event, Items, Threshold
from tests.unit.infra.support import PROJECT, build, each, imported, new_stack, synthesized

ORDERS = Aggregate("orders", Items("order"), pk="SHOP", sk="ORDERS", measures={"n": Count()})

_BREACHES: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
}
VIEWS = Aggregate("views", Event("view", pk="URL#{url}", sk="ID#{id}"), pk="URL#{url}", sk="S", measures={"n": Count()})
HANDLER = "dynamodb_counters.handlers.verifier.handler"


def alarms() -> list[dict[str, Any]]:
    stack = new_stack()
    counters = build(DedupCounterTable, stack)
    for construct in (StreamAggregator, ThresholdEvents, EventIngest):
        more: dict[str, Any] = {}
        if construct is ThresholdEvents:
            more = {"thresholds": [Threshold("often", ORDERS, at=[1000])]}
        if construct is StreamAggregator:
            more = {"source_table": imported(stack), "aggregates": [ORDERS], "verify_every": Duration.days(1)}
        build(construct, stack, table=counters, **more)
    return each(synthesized(stack), "AWS::CloudWatch::Alarm")


@pytest.fixture(scope="module")
def always() -> dict[str, dict[str, Any]]:
    """The alarms, by the names that their descriptions link to."""
    linked = {alarm["AlarmDescription"].rpartition("#")[2]: alarm for alarm in alarms()}
    names = re.findall(r"^### (\w+)$", (PROJECT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    return {name: linked[name.lower()] for name in names if name.lower() in linked}


def fires(alarm: dict[str, Any], hours: list[float | None]) -> bool:
    """Whether an alarm is on after hours with one value, or none, per period, the newest last.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
    """
    values = [value for value in hours for _ in range(max(1, 3600 // alarm["Period"]))]
    periods: int = alarm["EvaluationPeriods"]
    if alarm["TreatMissingData"] == "ignore":
        # Periods without data leave the state as it is.
        values = [value for value in values if value is not None]
    seen = ([None] * periods + values)[-periods:]
    missing, breaches = alarm["TreatMissingData"] == "breaching", _BREACHES[alarm["ComparisonOperator"]]
    found = sum(missing if value is None else breaches(value, alarm["Threshold"]) for value in seen)
    return bool(found >= alarm.get("DatapointsToAlarm", periods))


def test_a_mapping_that_stops_polling_is_noticed(always: dict[str, dict[str, Any]]) -> None:
    silent: list[float | None] = [None]
    assert {alarm["TreatMissingData"] for alarm in always.values()} == {"breaching", "notBreaching", "ignore"}
    assert {name for name, alarm in always.items() if fires(alarm, silent)} == {
        "PollingAlarm",
        "SourcePollingAlarm",
        "CrossingsPollingAlarm",
        "WatchAlarm",
        "VerifierAlarm",
        "VerificationAlarm",
    }
    polls = always["PollingAlarm"]
    assert polls["Statistic"] == "SampleCount", "an idle mapping polls nothing, and says so"
    assert not fires(polls, [5])


@pytest.mark.parametrize("name", ["WatchAlarm", "VerifierAlarm"])
def test_a_schedule_that_fails_or_is_silent_is_noticed(name: str, always: dict[str, dict[str, Any]]) -> None:
    """After three times its interval."""
    alarm = always[name]
    assert (alarm["MetricName"], alarm["Period"] * alarm["EvaluationPeriods"]) == ("Errors", 45 * 60)
    assert fires(alarm, [0, None])
    assert fires(alarm, [0, 1])
    assert not fires(alarm, [None, 0])


def test_a_verification_without_end_is_noticed(always: dict[str, dict[str, Any]]) -> None:
    """After two days and one more for a daily verification."""
    alarm = always["VerificationAlarm"]
    assert (alarm["MetricName"], alarm["Statistic"]) == ("GroupsVerified", "SampleCount")
    assert alarm["Period"] * alarm["EvaluationPeriods"] == 72 * 3600
    assert fires(alarm, [None] * 100)
    assert not fires(alarm, [*[None] * 100, 1])


def test_an_alarm_is_on_as_long_as_something_waits(always: dict[str, dict[str, Any]]) -> None:
    """The function reports what waits every 15 minutes, and nothing else: one value in 45 is enough."""
    alarm = always["UncountedAlarm"]
    assert alarm["Period"] <= 300, "within minutes"
    assert (alarm["DatapointsToAlarm"], alarm["Period"] * alarm["EvaluationPeriods"]) == (1, 45 * 60)
    assert fires(alarm, [None, 1])
    assert not fires(alarm, [1, None])


def test_events_that_were_taken_but_not_accepted_raise_an_alarm(always: dict[str, dict[str, Any]]) -> None:
    assert fires(always["DeadLettersAlarm"], [1])
    assert fires(always["WaitingAlarm"], [900])
    assert fires(always["RetryingAlarm"], [900])


def test_a_stack_has_only_alarms_that_guard_data(always: dict[str, dict[str, Any]]) -> None:
    """Delayed counting ends in one of these before anything is lost."""
    assert {*always} == {
        *("LagAlarm", "PollingAlarm", "DroppedAlarm", "UncountedAlarm", "DefinitionAlarm", "WatchAlarm"),
        *("SourcePollingAlarm", "DriftAlarm", "VerifierAlarm", "VerificationAlarm"),
        *("CrossingsWaitAlarm", "CrossingsPollingAlarm", "CrossingsGivenUpAlarm", "CrossingsDroppedAlarm"),
        "CrossingsUndeliverableAlarm",
        *("DeadLettersAlarm", "WaitingAlarm", "RetryingAlarm"),
    }


def test_crossings_that_wait_raise_an_alarm_long_before_they_are_given_up(always: dict[str, dict[str, Any]]) -> None:
    quarter = 15 * 60 * 1000
    assert fires(always["CrossingsWaitAlarm"], [quarter])
    assert not fires(always["CrossingsWaitAlarm"], [quarter - 1])
    assert not fires(always["CrossingsWaitAlarm"], [quarter, None])
    for name in ("CrossingsGivenUpAlarm", "CrossingsDroppedAlarm", "CrossingsUndeliverableAlarm"):
        assert fires(always[name], [1])


def test_every_alarm_links_to_its_section_of_the_runbook() -> None:
    page = (PROJECT / "docs" / "runbook.md").read_text()
    runbook = dict(re.findall(r"^### (\w+)\n\n(.+)", page, re.MULTILINE))
    anchors = {name.lower() for name in runbook}
    linked = {alarm["AlarmDescription"].partition(" Runbook: docs/runbook.md#")[2] for alarm in alarms()}
    assert linked == anchors


def template(**arguments: Any) -> Any:
    stack = new_stack()
    build(StreamAggregator, stack, table=build(DedupCounterTable, stack), aggregates=[VIEWS], **arguments)
    return synthesized(stack)


def verifiers(found: Any) -> list[dict[str, Any]]:
    return [function for function in each(found, "AWS::Lambda::Function") if function["Handler"] == HANDLER]


def is_drift(alarm: dict[str, Any]) -> bool:
    return bool(alarm.get("MetricName") == "Drift")


def test_a_verification_begins_as_often_as_asked_and_goes_on_every_quarter_of_an_hour() -> None:
    found = template(verify_every=Duration.days(1), verify_sample=0.25)
    [function] = verifiers(found)
    assert (function["Timeout"], function["Environment"]["Variables"]["SAMPLE"]) == (900, "0.25")
    schedules = {
        rule["ScheduleExpression"]: rule["Targets"][0].get("Input")
        for rule in each(found, "AWS::Events::Rule")
        if "ScheduleExpression" in rule and "Input" in rule["Targets"][0]
    }
    assert schedules == {"rate(1 day)": '{"begin":true}', "rate(15 minutes)": '{"begin":false}'}
    [alarm] = filter(is_drift, each(found, "AWS::CloudWatch::Alarm"))
    assert (alarm["Threshold"], alarm["TreatMissingData"]) == (1, "ignore")


def test_the_verifier_may_not_change_counts() -> None:
    [policy] = [
        policy
        for policy in each(template(verify_every=Duration.hours(1)), "AWS::IAM::Policy")
        if "Verifier" in policy["PolicyName"]
    ]
    actions = set[str]()
    for statement in policy["PolicyDocument"]["Statement"]:
        listed = statement["Action"]
        actions |= {listed} if isinstance(listed, str) else set(listed)
    assert {action for action in actions if action.startswith("dynamodb:")} == {
        f"dynamodb:{action}"
        for action in ("BatchGetItem", "DescribeStream", "DescribeTable", "GetItem", "PutItem", "Query", "Scan")
    }
