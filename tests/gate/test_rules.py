"""Nothing that we deploy breaks a rule of AWS by which data is lost, counted twice or shown to others, in silence.

What AWS or cfn-lint refuses (`test_specification.py`), and what a role needs (`test_roles.py`), is no rule here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import pytest

from examples.stacks import stacks
from tests.gate.roles import named
from tests.gate.template import Resource, Template, covers, listed, references, variables
from tests.gate.templates import names, templates
from tests.gate.test_roles import called, functions, handler
from tests.unit.infra.support import PROJECT, new_app, synthesized

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
def tables_can_be_counted_and_restored(template: Template) -> Iterator[str]:
    """A stream of both images, TTL, and by default a backup and protection."""
    for table in template.each("DynamoDB::GlobalTable"):
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


class Alarm(NamedTuple):
    """An alarm at or above a threshold, or below 1; `missing` is what silence means."""

    metric: str
    of: str
    statistic: str = "Maximum"
    threshold: float = 1
    minutes: int = 5
    missing: str = "notBreaching"


_BELOW: Final = ("PolledEventCount", "GroupsVerified")
_GIVEN_UP: Final = ("DestinationDeliveryFailures", "function", "Sum")
_POLLED: Final = ("PolledEventCount", "SampleCount", 1, 15, "breaching")
_METERED: Final = ("Sum", 1, 45, "breaching")
ALARMS: Final = {
    "LagAlarm": Alarm("IteratorAge", "function", threshold=3_600_000),
    "PollingAlarm": Alarm(_POLLED[0], "mapping of table/stream", *_POLLED[1:]),
    "DroppedAlarm": Alarm(*_GIVEN_UP),
    # Waiting is reported every 15 minutes, and nothing else: a value in 45 is enough.
    "UncountedAlarm": Alarm("Uncounted", "service", minutes=45),
    "DefinitionAlarm": Alarm("DefinitionChanged", "service"),
    "WatchAlarm": Alarm("Errors", "alias", *_METERED),
    "SourcePollingAlarm": Alarm(_POLLED[0], "mapping of source table/stream", *_POLLED[1:]),
    "DriftAlarm": Alarm("Drift", "service", missing="ignore"),
    "VerifierAlarm": Alarm("Errors", "function", *_METERED),
    "VerificationAlarm": Alarm("GroupsVerified", "service", "SampleCount", 1, 72 * 60, "breaching"),
    "CrossingsWaitAlarm": Alarm("IteratorAge", "function", threshold=900_000),
    "CrossingsPollingAlarm": Alarm(_POLLED[0], "mapping of table/stream", *_POLLED[1:]),
    "CrossingsGivenUpAlarm": Alarm("OnFailureDestinationDeliveredEventCount", "mapping of table/stream", "Sum"),
    "CrossingsDroppedAlarm": Alarm(*_GIVEN_UP),
    "CrossingsUndeliverableAlarm": Alarm("CrossingsUndeliverable", "service", "Sum"),
    "DeadLettersAlarm": Alarm("ApproximateNumberOfMessagesVisible", "dead letters"),
    "WaitingAlarm": Alarm("ApproximateAgeOfOldestMessage", "queue", threshold=900),
    "RetryingAlarm": Alarm("OldestUnfinished", "service", threshold=900, minutes=15),
}
"""Every alarm, by its section of the runbook."""
_WATCHED: Final = {
    "aggregator": ("LagAlarm", "PollingAlarm", "DroppedAlarm", "UncountedAlarm", "DefinitionAlarm", "WatchAlarm"),
    "ingest_queue": ("DeadLettersAlarm", "WaitingAlarm", "RetryingAlarm"),
    "notifier": tuple(name for name in ALARMS if name.startswith("Crossings")),
    "source": ("SourcePollingAlarm",),
    "verifier": ("DriftAlarm", "VerifierAlarm", "VerificationAlarm"),
}
"""The alarms of handlers; those of a source table are the aggregator's."""
_RUNBOOK: Final = " Runbook: docs/runbook.md#"


@rule
def alarms_are_those_of_the_table(template: Template) -> Iterator[str]:
    """Each handler has its alarms, which act if they can; those of retained queues stay."""
    present = {handler(function).partition(",")[0]: function for function in functions(template)}
    if "aggregator" in present and "SOURCE_TABLE_ARN" in variables(present["aggregator"]):
        present["source"] = present["aggregator"]
    wanted = {name.lower(): (ALARMS[name], one) for key, one in present.items() for name in _WATCHED.get(key, ())}
    alarms = {
        str(alarm["AlarmDescription"]).partition(_RUNBOOK)[2]: alarm for alarm in template.each("CloudWatch::Alarm")
    }
    yield from (f"no alarm with a link to {name}" for name in wanted.keys() - alarms.keys())
    if any(template.each("SNS::Topic")) and not any(alarm["AlarmActions"] for alarm in alarms.values()):
        yield "a topic, and no alarm with an action"
    for name, alarm in alarms.items():
        if name not in wanted:
            # The user's own.
            yield from [f"{alarm.id}: {name}"] if name else []
            continue
        known, function = wanted[name]
        periods, below = alarm["EvaluationPeriods"], known.metric in _BELOW
        settings = Alarm(
            alarm["MetricName"],
            _watched(template, alarm, function),
            alarm["Statistic"],
            alarm["Threshold"],
            alarm["Period"] * periods // 60,
            alarm["TreatMissingData"],
        )
        datapoints = 1 if known.metric == "Uncounted" else periods
        comparison = "LessThanThreshold" if below else "GreaterThanOrEqualToThreshold"
        if (*settings, alarm["DatapointsToAlarm"] or periods, alarm["ComparisonOperator"]) != (
            *(*known, datapoints),
            comparison,
        ):
            yield f"{alarm.id}: {settings}"
        if known.of in ("queue", "dead letters") and alarm.document.get("DeletionPolicy") != "Retain":
            yield f"{alarm.id}: goes before its queue"


def _watched(template: Template, alarm: Resource, function: Resource) -> str:
    """What an alarm watches; "" if its metric does not exist.

    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    """
    dimensions = {one["Name"]: one["Value"] for one in alarm["Dimensions"]}
    match [*dimensions]:
        case ["service"]:
            service = [
                one for one in functions(template) if variables(one)["POWERTOOLS_SERVICE_NAME"] == dimensions["service"]
            ]
            emitted = {name for one in service for name in called(handler(one)).metrics}
            return "service" if alarm["MetricName"] in emitted else ""
        case ["FunctionName"]:
            return "function" if dimensions["FunctionName"] == {"Ref": function.id} else ""
        case ["FunctionName", "Resource"]:
            # Lambda meters each invocation by what was invoked: a rule has to invoke the alias.
            invoked = [target["Arn"] for one in template.each("Events::Rule") for target in one["Targets"] or ()]
            aliases = [alias for arn in invoked if (alias := template.of(arn, "Lambda::Alias"))]
            names = [{"Fn::Join": ["", [one["FunctionName"], f":{one['Name']}"]]} for one in aliases]
            return "alias" if dimensions["Resource"] in names else ""
        case ["EventSourceMappingUUID"]:
            mapping = template.of(dimensions["EventSourceMappingUUID"], "Lambda::EventSourceMapping")
            # Lambda emits these only if the mapping asks for them.
            if mapping is not None and mapping["MetricsConfig"] == {"Metrics": ["EventCount"]}:
                return f"mapping of {named(template, mapping['EventSourceArn'])}"
        case ["QueueName"]:
            return named(template, dimensions["QueueName"])
    return ""


def test_every_alarm_has_a_section_of_the_runbook() -> None:
    page = (PROJECT / "docs" / "runbook.md").read_text()
    assert {*re.findall(r"^### (\w+)\n\n.+", page, re.MULTILINE)} == {*ALARMS}


@rule
def caches_keep_what_is_protected_private(template: Template) -> Iterator[str]:
    """A shared cache must not answer for an authorizer."""
    for function in template.each("Lambda::Function"):
        is_protected = any(route["AuthorizationType"] not in (None, "NONE") for route in template.routes_to(function))
        if is_protected and str(variables(function).get("CACHE_CONTROL", "")).startswith("public"):
            yield f"{function.id}: answers are public behind an authorizer"


@rule
def networks_are_for_lambda_alone(template: Template) -> Iterator[str]:
    """Calls of the function's own code name the function.

    https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
    """
    for policy in template.each("IAM::Policy"):
        for statement in policy["PolicyDocument"]["Statement"]:
            is_of_network = any(action.startswith("ec2:") for action in listed(statement["Action"]))
            if is_of_network and statement.get("Condition") != {"Null": {"lambda:SourceFunctionArn": "true"}}:
                yield f"{policy.id}: {statement['Action']}"


@rule
def routes_are_protected(template: Template) -> Iterator[str]:
    """Nobody gets in without an authorizer, and no API takes any number of requests."""
    for route in template.each("ApiGatewayV2::Route"):
        if route["AuthorizationType"] in (None, "NONE"):
            yield f"{route.id}: public"
    for stage in template.each("ApiGatewayV2::Stage"):
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
    found = {name: [*check(templates()[template])] for name, check in RULES.items()}
    asked = {name for chosen, name in CHOSEN if chosen == template}
    assert {name: findings for name, findings in found.items() if findings and name not in asked} == {}
    assert all(found[name] for name in asked)


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
