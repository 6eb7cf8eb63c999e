"""Alarms fire while something is wrong, and say what to do; so do those of a scheduled verification."""

from __future__ import annotations

import re
from typing import Any

import pytest
from aws_cdk import Duration

from cdk_dynamodb_counters import DedupCounterTable, EventIngest, StreamAggregator, ThresholdEvents
from dynamodb_counters import Aggregate, Count, Items, Threshold
from tests.unit.infra.support import PROJECT, build, each, imported, new_stack, synthesized

ORDERS = Aggregate("orders", Items("order"), pk="SHOP", sk="ORDERS", measures={"n": Count()})


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


def test_silence_is_noticed(always: dict[str, dict[str, Any]]) -> None:
    assert {name for name, alarm in always.items() if alarm["TreatMissingData"] == "breaching"} == {
        *("PollingAlarm", "SourcePollingAlarm", "CrossingsPollingAlarm"),
        *("WatchAlarm", "VerifierAlarm", "VerificationAlarm"),
    }
    assert always["PollingAlarm"]["Statistic"] == "SampleCount", "an idle mapping polls nothing, and says so"


def test_an_alarm_is_on_as_long_as_something_waits(always: dict[str, dict[str, Any]]) -> None:
    """The function reports what waits every 15 minutes, and nothing else: one value in 45 is enough."""
    alarm = always["UncountedAlarm"]
    assert alarm["Period"] <= 300, "within minutes"
    assert (alarm["DatapointsToAlarm"], alarm["Period"] * alarm["EvaluationPeriods"]) == (1, 45 * 60)
    assert (alarm["Threshold"], alarm["TreatMissingData"]) == (1, "notBreaching")


def test_every_alarm_links_to_its_section_of_the_runbook() -> None:
    page = (PROJECT / "docs" / "runbook.md").read_text()
    runbook = dict(re.findall(r"^### (\w+)\n\n(.+)", page, re.MULTILINE))
    anchors = {name.lower() for name in runbook}
    linked = {alarm["AlarmDescription"].partition(" Runbook: docs/runbook.md#")[2] for alarm in alarms()}
    assert linked == anchors
