"""Nothing that we deploy breaks a rule of AWS by which data is lost, counted twice or shown to others, in silence.

What AWS or cfn-lint refuses (`test_specification.py`), and what a role needs (`test_roles.py`), is no rule here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from examples.stacks import stacks
from tests.gate.template import Resource, Template, covers, references, variables
from tests.gate.templates import names, templates
from tests.unit.infra.support import new_app, synthesized

_DAY: Final = 86_400
_LONGEST_WINDOW: Final = 300
_STORES: Final = ("DynamoDB::GlobalTable", "DynamoDB::Table", "SQS::Queue", "S3::Bucket")

Rule = Callable[[Template], Iterator[str]]
RULES: Final[dict[str, Rule]] = {}


def rule(check: Rule) -> Rule:
    """Register a check, which yields what breaks it."""
    return RULES.setdefault(check.__name__, check)


def _number(mapping: Resource, name: str, default: int) -> int:
    value = mapping[name]
    return default if value is None or isinstance(value, dict) else int(value)


@rule
def batches_name_their_shard_and_are_whole(template: Template) -> Iterator[str]:
    """Events have a ``shardId`` in a tumbling window only, which takes neither filters nor parallel batches.

    https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-windows.html
    """
    for mapping, _ in template.mappings("stream"):
        is_tumbling, is_filtered = bool(mapping["TumblingWindowInSeconds"]), bool(mapping["FilterCriteria"])
        if is_tumbling == is_filtered or (is_tumbling and _number(mapping, "ParallelizationFactor", 1) > 1):
            yield f"{mapping.id}: not one of a tumbling window and a filter, or a shard in parallel"


@rule
def what_is_left_of_a_batch_comes_again(template: Template) -> Iterator[str]:
    """Without it, a response means that all is done.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
    """
    notified = [pair for pair in template.mappings("stream") if pair[0]["FilterCriteria"]]
    for mapping, _ in (*template.mappings("queue"), *notified):
        if mapping["FunctionResponseTypes"] != ["ReportBatchItemFailures"]:
            yield f"{mapping.id}: FunctionResponseTypes {mapping['FunctionResponseTypes']}"


@rule
def records_are_given_up_before_the_stream_forgets_them(template: Template) -> Iterator[str]:
    """The destination gets only what exceeds a limit that is set; streams forget after 24 hours, and leave no trace.

    https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
    """
    for mapping, _ in template.mappings("stream"):
        age, retries = _number(mapping, "MaximumRecordAgeInSeconds", -1), _number(mapping, "MaximumRetryAttempts", -1)
        if not 60 <= age < _DAY or retries != -1:
            yield f"{mapping.id}: records are given up after {age} s or {retries} retries"
        if not (mapping["DestinationConfig"] or {}).get("OnFailure", {}).get("Destination"):
            yield f"{mapping.id}: what is given up goes nowhere"
        # LATEST may miss what is written while the mapping is being created.
        if mapping["StartingPosition"] != "TRIM_HORIZON":
            yield f"{mapping.id}: starts at {mapping['StartingPosition']}"


@rule
def functions_know_the_tables_whose_streams_they_read(template: Template) -> Iterator[str]:
    """Stream and name are of one table: else records of one are counted into another."""
    for mapping, function in template.mappings("stream"):
        known = [variables(function).get(name) for name in ("TABLE_NAME", "SOURCE_TABLE_ARN")]
        # What is filtered writes to no table.
        if not mapping["FilterCriteria"] and not references(mapping["EventSourceArn"]) <= references(known):
            yield f"{mapping.id}: the stream of another table"


@rule
def queues_lose_no_message(template: Template) -> Iterator[str]:
    """Hidden for six timeouts and a window, tried five times, then a dead letter, which keeps its age.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    for mapping, function in template.mappings("queue"):
        queue = template.of(mapping["EventSourceArn"], "SQS::Queue")
        assert queue is not None
        least = 6 * function.properties.get("Timeout", 3) + _number(
            mapping, "MaximumBatchingWindowInSeconds", _LONGEST_WINDOW
        )
        if not least <= queue.properties.get("VisibilityTimeout", 30) <= _DAY / 2:
            yield f"{queue.id}: hides messages for {queue['VisibilityTimeout']} s, expected {least} to 43,200"
        policy = queue["RedrivePolicy"] or {}
        dead = template.of(policy.get("deadLetterTargetArn"), "SQS::Queue")
        if dead is None or policy["maxReceiveCount"] < 5:
            yield f"{queue.id}: no dead-letter queue, or fewer than five receives"
        elif (dead["MessageRetentionPeriod"] or 0) <= (queue["MessageRetentionPeriod"] or 4 * _DAY):
            yield f"{dead.id}: keeps messages no longer than {queue.id}"
        # Lambda ends a chain of about 16 invocations: what is sent again as often becomes a dead letter.
        for one in template.allowed(function["Role"]):
            if one.action == "sqs:SendMessage" and covers(one.resource, {"Fn::GetAtt": [queue.id, "Arn"]}):
                yield f"{function.id}: sends to {queue.id}, which invokes it"


@rule
def what_nothing_else_stores_is_retained(template: Template) -> Iterator[str]:
    """Tables, queues and buckets hold what was answered with 202: they outlive their stack and a replacement."""
    for resource in template.each(*_STORES):
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            if resource.document.get(policy) != "Retain":
                yield f"{resource.id}: {policy} {resource.document.get(policy)}"
        # It would replace a table that was deployed without one by an empty table: CDK makes it up, silently.
        if resource["TableName"] is not None:
            yield f"{resource.id}: the name {resource['TableName']}"


@rule
def streams_are_watched(template: Template) -> Iterator[str]:
    """Lag, silence, what was given up and what was lost: each has an alarm, always."""
    for mapping, function in template.mappings("stream"):
        service = [{"Name": "service", "Value": variables(function)["POWERTOOLS_SERVICE_NAME"]}]
        watched = {
            alarm["MetricName"]
            for alarm in template.each("CloudWatch::Alarm")
            if {mapping.id, function.id} & references(alarm["Dimensions"]) or alarm["Dimensions"] == service
        }
        wanted = {"IteratorAge", "PolledEventCount", "DestinationDeliveryFailures"}
        wanted |= {"OnFailureDestinationDeliveredEventCount"} if mapping["FilterCriteria"] else {"Uncounted"}
        yield from (f"{mapping.id}: no alarm on {name}" for name in sorted(wanted - watched))


@rule
def schedules_have_a_heartbeat(template: Template) -> Iterator[str]:
    """An alarm on its absence: a rule, a permission or a function that is broken emits nothing.

    Lambda meters each invocation's errors, 0 included, by function and by what was invoked, such as an alias.
    """
    for one in template.each("Events::Rule"):
        for target in one["Targets"] or () if one["ScheduleExpression"] else ():
            function, alias = template.invoked(target["Arn"]), template.of(target["Arn"], "Lambda::Alias")
            if function is None:
                continue
            metric, dimensions = "Errors", dict[str, Any](FunctionName={"Ref": function.id})
            if alias is not None:
                dimensions["Resource"] = {"Fn::Join": ["", [{"Ref": function.id}, f":{alias['Name']}"]]}
            if json.loads(target.get("Input", "{}")).get("begin"):
                metric, dimensions = "GroupsVerified", {"service": variables(function)["POWERTOOLS_SERVICE_NAME"]}
            # Other invocations of the function would hide that the schedule makes none.
            elif alias is None and any(mapped is function for _, mapped in template.mappings("stream")):
                metric = ""
            if not any(
                alarm["MetricName"] == metric
                and alarm["TreatMissingData"] == "breaching"
                and {each["Name"]: each["Value"] for each in alarm["Dimensions"]} == dimensions
                for alarm in template.each("CloudWatch::Alarm")
            ):
                yield f"{one.id}: no alarm on its silence"


@rule
def caches_keep_what_is_protected_private(template: Template) -> Iterator[str]:
    """A shared cache must not answer for an authorizer."""
    for function in template.each("Lambda::Function"):
        is_protected = any(route["AuthorizationType"] not in (None, "NONE") for route in template.routes_to(function))
        if is_protected and str(variables(function).get("CACHE_CONTROL", "")).startswith("public"):
            yield f"{function.id}: answers are public behind an authorizer"


CHOSEN: Final = {
    ("table_everything", "what_nothing_else_stores_is_retained"): "removal_policy=DESTROY asks for it",
}
"""Findings that the user of a construct has asked for."""


@pytest.mark.parametrize("template", names())
def test_a_template_keeps_the_rules(template: str) -> None:
    found = {name: [*check(templates()[template])] for name, check in RULES.items()}
    asked = {name for chosen, name in CHOSEN if chosen == template}
    assert {name for name, findings in found.items() if findings} == asked, found


def test_deployments_in_one_account_share_no_metric() -> None:
    """https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html says what one is."""
    stack = stacks()["CountersBlog"]
    services: list[set[str]] = []
    for name in ("Dev", "Prod"):
        template = Template(name, dict(synthesized(stack(new_app(), name)).to_json()))
        functions = template.each("Lambda::Function")
        services.append({variables(function)["POWERTOOLS_SERVICE_NAME"] for function in functions})
    dev, prod = services
    assert dev
    assert dev.isdisjoint(prod)
