"""Nothing that we deploy breaks a rule of AWS by which data is lost, counted twice or shown to others, in silence.

What AWS or cfn-lint refuses (`test_templates.py`), and what a role needs (`test_roles.py`), is no rule here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.gate.template import Resource, Template, listed, references, variables
from tests.gate.templates import names, templates
from tests.gate.test_roles import called, handler
from tests.unit.infra.support import PROJECT

_DAY: Final = 86_400
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
    """Require a limit of age: only what exceeds it reaches the destination; streams forget after 24 hours.

    https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
    """
    for mapping, _ in template.mappings("stream"):
        age, retries = _number(mapping, "MaximumRecordAgeInSeconds", -1), _number(mapping, "MaximumRetryAttempts", -1)
        if not 60 <= age < _DAY or retries != -1:
            yield f"{mapping.id}: records are given up after {age} s or {retries} retries"
        if not (mapping["DestinationConfig"] or {}).get("OnFailure", {}).get("Destination"):
            yield f"{mapping.id}: what is given up goes nowhere"
        # One record that fails would hold up all others of its batch until they are given up.
        if mapping["BisectBatchOnFunctionError"] is not True:
            yield f"{mapping.id}: is not split"
        # LATEST may miss what is written while the mapping is being created.
        if mapping["StartingPosition"] != "TRIM_HORIZON":
            yield f"{mapping.id}: starts at {mapping['StartingPosition']}"


@rule
def functions_know_the_tables_whose_streams_they_read(template: Template) -> Iterator[str]:
    """Stream and name are of one table: else records of one are counted into another."""
    for mapping, function in template.mappings("stream"):
        values = [variables(function).get(name) for name in ("TABLE_NAME", "SOURCE_TABLE_ARN")]
        # What is filtered writes to no table.
        if not mapping["FilterCriteria"] and not references(mapping["EventSourceArn"]) <= references(values):
            yield f"{mapping.id}: the stream of another table"


@rule
def what_nothing_else_stores_is_retained(template: Template) -> Iterator[str]:
    """Tables, queues and buckets hold what was answered with 202: they outlive their stack and a replacement."""
    for resource in template.instances(*_STORES):
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            if resource.document.get(policy) != "Retain":
                yield f"{resource.id}: {policy} {resource.document.get(policy)}"
        # It would replace a table that was deployed without one by an empty table: CDK makes it up, silently.
        if resource["TableName"] is not None:
            yield f"{resource.id}: the name {resource['TableName']}"


@rule
def tables_can_be_counted_and_restored(template: Template) -> Iterator[str]:
    """Require a stream of both images, TTL, and by default a backup and protection."""
    for table in template.instances("DynamoDB::GlobalTable"):
        [replica] = table["Replicas"]
        settings = (
            table["StreamSpecification"],
            table["TimeToLiveSpecification"],
            replica["PointInTimeRecoverySpecification"],
            replica["DeletionProtectionEnabled"],
        )
        images, expiry = {"StreamViewType": "NEW_AND_OLD_IMAGES"}, {"AttributeName": "ttl", "Enabled": True}
        if settings != (images, expiry, {"PointInTimeRecoveryEnabled": True}, True):
            yield f"{table.id}: {settings}"


_RUNBOOK: Final = " Runbook: docs/runbook.md#"


def _sections(template: Template) -> Iterator[tuple[str, Resource]]:
    """Our alarms, each with its section of the runbook."""
    for alarm in template.instances("CloudWatch::Alarm"):
        if section := str(alarm["AlarmDescription"]).partition(_RUNBOOK)[2]:
            yield section, alarm


@rule
def alarms_watch_what_there_is(template: Template) -> Iterator[str]:
    """Require that what is deployed emits what an alarm watches: else it would never fire.

    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    """
    for _, alarm in _sections(template):
        if not _exists(template, alarm):
            yield f"{alarm.id}: {alarm['MetricName']} of {alarm['Dimensions']}"


def _exists(template: Template, alarm: Resource) -> bool:
    dimensions = {item["Name"]: item["Value"] for item in alarm["Dimensions"]}
    ours = [*template.functions()]
    match [*dimensions]:
        case ["service"]:
            service = [item for item in ours if variables(item)["POWERTOOLS_SERVICE_NAME"] == dimensions["service"]]
            return any(alarm["MetricName"] in called(handler(function)).metrics for function in service)
        case ["FunctionName"]:
            return dimensions["FunctionName"] in [{"Ref": function.id} for function in ours]
        case ["FunctionName", "Resource"]:
            # Lambda meters each invocation by what was invoked: a rule has to invoke the alias.
            invoked = [target["Arn"] for item in template.instances("Events::Rule") for target in item["Targets"] or ()]
            aliases = [alias for arn in invoked if (alias := template.of(arn, "Lambda::Alias"))]
            targets = [{"Fn::Join": ["", [resource["FunctionName"], f":{resource['Name']}"]]} for resource in aliases]
            return dimensions["Resource"] in targets
        case ["EventSourceMappingUUID"]:
            mapping = template.of(dimensions["EventSourceMappingUUID"], "Lambda::EventSourceMapping")
            # Lambda emits these only if the mapping asks for them.
            return mapping is not None and mapping["MetricsConfig"] == {"Metrics": ["EventCount"]}
        case ["QueueName"]:
            return template.of(dimensions["QueueName"], "SQS::Queue") is not None
    return False


def test_every_alarm_has_a_section_of_the_runbook() -> None:
    page = (PROJECT / "docs" / "runbook.md").read_text()
    linked = {section for template in templates().values() for section, _ in _sections(template)}
    assert {name.lower() for name in re.findall(r"^### (\w+)\n\n.+", page, re.MULTILINE)} == linked


@rule
def caches_keep_what_is_protected_private(template: Template) -> Iterator[str]:
    """Refuse a shared cache that answers for an authorizer."""
    for function in template.instances("Lambda::Function"):
        is_protected = any(route["AuthorizationType"] not in (None, "NONE") for route in template.routes_to(function))
        if is_protected and str(variables(function).get("CACHE_CONTROL", "")).startswith("public"):
            yield f"{function.id}: answers are public behind an authorizer"


@rule
def networks_are_for_lambda_alone(template: Template) -> Iterator[str]:
    """Require that calls of the function's own code name the function.

    https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
    """
    for policy in template.instances("IAM::Policy"):
        for statement in policy["PolicyDocument"]["Statement"]:
            is_of_network = any(action.startswith("ec2:") for action in listed(statement["Action"]))
            if is_of_network and statement.get("Condition") != {"Null": {"lambda:SourceFunctionArn": "true"}}:
                yield f"{policy.id}: {statement['Action']}"


@rule
def routes_are_protected(template: Template) -> Iterator[str]:
    """Nobody gets in without an authorizer, and no API takes any number of requests."""
    for route in template.instances("ApiGatewayV2::Route"):
        if route["AuthorizationType"] in (None, "NONE"):
            yield f"{route.id}: public"
    for stage in template.instances("ApiGatewayV2::Stage"):
        if not {"ThrottlingBurstLimit", "ThrottlingRateLimit"} <= {*(stage["DefaultRouteSettings"] or ())}:
            yield f"{stage.id}: not throttled"


CHOSEN: Final = {
    ("CountersBlog", "routes_are_protected"): "a public blog",
    ("api_everything", "routes_are_protected"): "HttpNoneAuthorizer asks for it",
    ("table_everything", "tables_can_be_counted_and_restored"): "point_in_time_recovery=False asks for it",
    ("table_everything", "what_nothing_else_stores_is_retained"): "removal_policy=DESTROY asks for it",
}
"""Findings that the user of a construct has asked for."""


@pytest.mark.parametrize("template", names())
def test_a_template_keeps_the_rules(template: str) -> None:
    results = {name: [*check(templates()[template])] for name, check in RULES.items()}
    choices = {name for chosen, name in CHOSEN if chosen == template}
    assert {name: findings for name, findings in results.items() if findings and name not in choices} == {}
    assert all(results[name] for name in choices)
