"""Scheduled verification: a function that may read the table and write its own pages, two rules, an alarm."""

from __future__ import annotations

from typing import Any

from aws_cdk import Duration

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator
from dynamodb_counters import Aggregate, Count, Event
from tests.unit.infra.support import build, each, new_stack, synthesized

VIEWS = Aggregate("views", Event("view", pk="URL#{url}", sk="ID#{id}"), pk="URL#{url}", sk="S", measures={"n": Count()})
HANDLER = "dynamodb_counters.handlers.verifier.handler"


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
