"""Logs and alarms: an operator who knows what to do sees what happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from tests.gate.rule import rule
from tests.gate.template import Resource, Template, references
from tests.unit.infra.support import PROJECT

_DIMENSIONS: Final = {
    "AWS/Lambda": ({"FunctionName"}, {"FunctionName", "Resource"}, {"EventSourceMappingUUID"}),
    "AWS/SQS": ({"QueueName"},),
    "AWS/ApiGateway": ({"ApiId"}, {"ApiId", "Stage"}),
    "DynamoDBCounters": ({"service"},),
}
_GIVEN_UP: Final = {"OnFailureDestinationDeliveredEventCount"}


@cache
def _runtime() -> str:
    paths = (path for path in (PROJECT / "lambdas").rglob("*.py") if "cli" not in path.parts)
    return "\n".join(path.read_text() for path in paths)


def _metrics(template: Template) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Each metric that an alarm looks at: who looks, namespace, name, dimensions."""
    for alarm in template.each("CloudWatch::Alarm"):
        dimensions = {one["Name"]: one["Value"] for one in alarm["Dimensions"] or ()}
        if alarm["MetricName"]:
            yield alarm.id, alarm["Namespace"], alarm["MetricName"], dimensions


@rule("AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html")
def alarms_look_back_no_further_than_cloudwatch(template: Template) -> Iterator[str]:
    """A day; a week with periods of an hour or more. Periods of 10, 20, 30 or full minutes."""
    for alarm in template.each("CloudWatch::Alarm"):
        period, periods = alarm["Period"] or 60, alarm["EvaluationPeriods"]
        if period * periods > (604_800 if period >= 3600 else 86_400):
            yield f"{alarm.id}: {periods} periods of {period} s"
        if period not in (10, 20, 30) and period % 60:
            yield f"{alarm.id}: a period of {period} s"
        if alarm.properties.get("DatapointsToAlarm", 1) > periods or len(str(alarm["AlarmDescription"])) > 1024:
            yield f"{alarm.id}: more data points than periods, or too long a description"


@rule("AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html")
def metrics_exist(template: Template) -> Iterator[str]:
    """A metric is its name and exactly its dimensions: another combination has no data, and no error says so."""
    for who, namespace, name, dimensions in _metrics(template):
        if namespace not in _DIMENSIONS:
            continue
        if {*dimensions} not in _DIMENSIONS[namespace]:
            yield f"{who}: {namespace} {name} has no dimensions {', '.join(dimensions)}"
        if namespace == "DynamoDBCounters" and f'"{name}"' not in _runtime():
            yield f"{who}: no function emits {name}"


@rule("lambda/latest/dg/monitoring-metrics-types.html")
def streams_are_watched(template: Template) -> Iterator[str]:
    """Lag, silence, what was given up and what was lost: each has an alarm, always."""
    for mapping, function in template.mappings("stream"):
        watched = {alarm["MetricName"]: alarm for alarm in _alarms_on(template, mapping, function)}
        service = {"Name": "service", "Value": function["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]}
        watched |= {
            one["MetricName"]: one for one in template.each("CloudWatch::Alarm") if one["Dimensions"] == [service]
        }
        wanted = {"IteratorAge", "PolledEventCount", "DestinationDeliveryFailures"}
        wanted |= _GIVEN_UP if mapping["FilterCriteria"] else {"Uncounted"}
        yield from (f"{mapping.id}: no alarm on {name}" for name in sorted(wanted - {*watched}))
        polled = watched.get("PolledEventCount")
        if polled is not None and (polled["TreatMissingData"], polled["Statistic"]) != ("breaching", "SampleCount"):
            yield f"{polled.id}: a disabled mapping emits nothing, an idle one zeros"


@rule("eventbridge/latest/userguide/eb-create-rule-schedule.html")
def schedules_have_a_heartbeat(template: Template) -> Iterator[str]:
    """An alarm on its absence: a rule, a permission or a function that is broken emits nothing."""
    for schedule, alarms in _heartbeats(template):
        if not any(alarm["TreatMissingData"] == "breaching" for alarm in alarms):
            yield f"{schedule.id}: no alarm on its silence"


def _heartbeats(template: Template) -> Iterator[tuple[Resource, list[Resource]]]:
    """Each schedule, with the alarms on what its invocations emit, and no others: what ends a verification, or errors.

    Lambda meters each invocation's errors, 0 included, by function and by what was invoked, such as an alias.
    """
    for one in template.each("Events::Rule"):
        for target in one["Targets"] or () if one["ScheduleExpression"] else ():
            function, alias = template.invoked(target["Arn"]), template.of(target["Arn"], "Lambda::Alias")
            if function is None:
                continue
            metric = "Errors"
            dimensions: dict[str, Any] = {"FunctionName": {"Ref": function.id}}
            if alias is not None:
                dimensions["Resource"] = {"Fn::Join": ["", [{"Ref": function.id}, f":{alias['Name']}"]]}
            if json.loads(target.get("Input", "{}")).get("begin"):
                service = function["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
                metric, dimensions = "GroupsVerified", {"service": service}
            # Other invocations of the function would hide that the schedule makes none.
            elif alias is None and any(mapped is function for _, mapped in template.mappings("stream")):
                metric = ""
            yield (
                one,
                [
                    alarm
                    for alarm in template.each("CloudWatch::Alarm")
                    if alarm["MetricName"] == metric
                    and {each["Name"]: each["Value"] for each in alarm["Dimensions"]} == dimensions
                ],
            )


def _alarms_on(template: Template, *watched: Resource) -> list[Resource]:
    names = {one.id for one in watched}
    return [alarm for alarm in template.each("CloudWatch::Alarm") if names & references(alarm["Dimensions"])]


@rule("lambda/latest/dg/monitoring-cloudwatchlogs-loggroups.html")
def logs_end(template: Template) -> Iterator[str]:
    """A function writes to a group of the template, which forgets: a group that Lambda creates keeps all for ever."""
    for function in template.each("Lambda::Function"):
        group = template.of((function["LoggingConfig"] or {}).get("LogGroup"), "Logs::LogGroup")
        if group is None:
            yield f"{function.id}: logs to no group of the template"
    for group in template.each("Logs::LogGroup"):
        if not group["RetentionInDays"]:
            yield f"{group.id}: kept for ever"


@rule("AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html")
def log_keys_trust_cloudwatch(template: Template) -> Iterator[str]:
    """The key's policy lets CloudWatch Logs use it, or the group is not created."""
    for group in template.each("Logs::LogGroup"):
        key = template.of(group["KmsKeyId"], "KMS::Key")
        if key is not None and '"logs.' not in json.dumps(key["KeyPolicy"]):
            yield f"{group.id}: its key {key.id} does not trust CloudWatch Logs"
