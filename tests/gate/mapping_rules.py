"""Event source mappings: what Lambda accepts, and what it loses without saying so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.gate.function_rules import variables
from tests.gate.rule import rule
from tests.gate.template import Resource, Template, covers, references

_DAY: Final = 86_400


def _number(mapping: Resource, name: str, default: int) -> int:
    value = mapping[name]
    return default if value is None or isinstance(value, dict) else int(value)


@rule("lambda/latest/api/API_CreateEventSourceMapping.html")
def mappings_stay_within_bounds(template: Template) -> Iterator[str]:
    """Batches, windows, retries and parallelism within what the API accepts."""
    bounds = {
        "BatchSize": (1, 10_000),
        "MaximumBatchingWindowInSeconds": (0, 300),
        "MaximumRetryAttempts": (-1, 10_000),
        "ParallelizationFactor": (1, 10),
        "TumblingWindowInSeconds": (0, 900),
    }
    for mapping in template.each("Lambda::EventSourceMapping"):
        for name, (least, most) in bounds.items():
            if not least <= _number(mapping, name, least) <= most:
                yield f"{mapping.id}: {name} {mapping[name]}: expected {least} to {most}"


@rule("lambda/latest/api/API_CreateEventSourceMapping.html")
def large_batches_need_a_window(template: Template) -> Iterator[str]:
    """A batch above ten needs a batching window of a second or more, of messages and of records."""
    for mapping in template.each("Lambda::EventSourceMapping"):
        if _number(mapping, "BatchSize", 10) > 10 and _number(mapping, "MaximumBatchingWindowInSeconds", 0) < 1:
            yield f"{mapping.id}: a batch of {mapping['BatchSize']} without a batching window"


@rule("lambda/latest/dg/services-sqs-scaling.html")
def concurrency_of_a_queue_fits(template: Template) -> Iterator[str]:
    """2 to 1,000 at a time, and no more than the function has reserved."""
    for mapping, function in template.mappings("queue"):
        most = (mapping["ScalingConfig"] or {}).get("MaximumConcurrency")
        if isinstance(most, int) and not 2 <= most <= function.properties.get("ReservedConcurrentExecutions", 1000):
            yield f"{mapping.id}: maximum concurrency {most}"


@rule("lambda/latest/dg/services-sqs-errorhandling.html")
def consumers_report_single_messages(template: Template) -> Iterator[str]:
    """Without it, one bad message brings back its whole batch."""
    for mapping, _ in template.mappings("queue"):
        if "ReportBatchItemFailures" not in (mapping["FunctionResponseTypes"] or ()):
            yield f"{mapping.id}: reports no single messages"


@rule("lambda/latest/dg/services-ddb-windows.html")
def tumbling_windows_exclude_parallelism_and_filters(template: Template) -> Iterator[str]:
    """State is per shard: neither a parallelization factor nor filters go with it."""
    for mapping in template.each("Lambda::EventSourceMapping"):
        parallel = _number(mapping, "ParallelizationFactor", 1) > 1
        if mapping["TumblingWindowInSeconds"] and (parallel or mapping["FilterCriteria"]):
            yield f"{mapping.id}: a tumbling window with parallel batches or filters"


@rule("lambda/latest/dg/services-ddb-windows.html")
def batches_of_a_stream_name_their_shard(template: Template) -> Iterator[str]:
    """An event carries ``shardId`` only in a tumbling window; the aggregator cannot count without it."""
    for mapping, _ in template.mappings("stream"):
        if not mapping["TumblingWindowInSeconds"] and not mapping["FilterCriteria"]:
            yield f"{mapping.id}: no tumbling window"


@rule("lambda/latest/dg/services-ddb-batchfailurereporting.html")
def crossings_are_reported_one_by_one(template: Template) -> Iterator[str]:
    """Without it, a crossing that is refused is taken for delivered."""
    for mapping, _ in template.mappings("stream"):
        if mapping["FilterCriteria"] and "ReportBatchItemFailures" not in (mapping["FunctionResponseTypes"] or ()):
            yield f"{mapping.id}: reports no single records"


@rule("lambda/latest/dg/monitoring-metrics-types.html")
def records_are_given_up_before_the_stream_forgets_them(template: Template) -> Iterator[str]:
    """The destination gets only what exceeds a limit that is set; streams forget after 24 hours, and leave no trace."""
    for mapping, _ in template.mappings("stream"):
        age, retries = _number(mapping, "MaximumRecordAgeInSeconds", -1), _number(mapping, "MaximumRetryAttempts", -1)
        if not 60 <= age < _DAY:
            yield f"{mapping.id}: records are given up after {age} s, the stream forgets them after {_DAY}"
        if retries != -1:
            yield f"{mapping.id}: gives up after {retries} retries, however soon"
        if not (mapping["DestinationConfig"] or {}).get("OnFailure", {}).get("Destination"):
            yield f"{mapping.id}: what is given up goes nowhere"


@rule("lambda/latest/dg/with-ddb.html")
def no_record_is_older_than_its_mapping(template: Template) -> Iterator[str]:
    """LATEST may miss what is written while the mapping is being created."""
    for mapping, _ in template.mappings("stream"):
        if mapping["StartingPosition"] != "TRIM_HORIZON":
            yield f"{mapping.id}: starts at {mapping['StartingPosition']}"


@rule("lambda/latest/dg/services-dynamodb-errors.html")
def roles_may_write_to_the_destination(template: Template) -> Iterator[str]:
    """A bucket as destination takes s3:PutObject on its objects and s3:ListBucket on itself."""
    for mapping, function in template.mappings("stream"):
        destination = (mapping["DestinationConfig"] or {}).get("OnFailure", {}).get("Destination")
        bucket = template.of(destination, "S3::Bucket")
        if bucket is None:
            continue
        arn = {"Fn::GetAtt": [bucket.id, "Arn"]}
        needed = {"s3:ListBucket": arn, "s3:PutObject": {"Fn::Join": ["", [arn, "/*"]]}}
        for action, resource in needed.items():
            allowed = [one.resource for one in template.allowed(function["Role"]) if one.action == action]
            if not any(covers(one, resource) for one in allowed):
                yield f"{function.id}: {action} on {bucket.id} is not allowed"


@rule("AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-globaltable.html")
def tables_keep_their_names(template: Template) -> Iterator[str]:
    """A name replaces a table that was deployed without one by an empty table: CDK makes it up, silently."""
    for table in template.each("DynamoDB::GlobalTable", "DynamoDB::Table"):
        if table["TableName"] is not None:
            yield f"{table.id}: the name {table['TableName']}"


@rule("lambda/latest/dg/with-ddb.html")
def functions_know_the_tables_whose_streams_they_read(template: Template) -> Iterator[str]:
    """Stream and name are of one table: else records of one are counted into another."""
    for mapping, function in template.mappings("stream"):
        if mapping["FilterCriteria"]:
            continue  # It writes to no table.
        known = [variables(function).get(name) for name in ("TABLE_NAME", "SOURCE_TABLE_ARN")]
        stream = mapping["EventSourceArn"]
        if isinstance(stream, str):
            is_known = any(isinstance(one, str) and one.partition("table/")[2] in stream for one in known)
        else:
            is_known = references(stream) <= references(known)
        if not is_known:
            yield f"{mapping.id}: the stream {stream} of another table"
