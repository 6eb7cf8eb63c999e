"""The parts of a `StreamAggregator`, each built by one function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import jsii
from aws_cdk import Duration, IStableStringProducer, Lazy, RemovalPolicy, Tokenization
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3

from cdk_dynamodb_counters._emulator import emulated
from cdk_dynamodb_counters._functions import build_role as build_function_role
from cdk_dynamodb_counters._grants import grant_aggregation
from cdk_dynamodb_counters._monitoring import Watch
from cdk_dynamodb_counters._nag import acknowledge, acknowledge_key, resource_finding
from cdk_dynamodb_counters._registry import Registration
from dynamodb_counters._declarations.codec import encode

if TYPE_CHECKING:
    from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
    from cdk_dynamodb_counters.stream_aggregator import StreamAggregator

# Metrics are log lines without a level. Lambda takes them for INFO, and a higher level would drop them:
# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
LOG_LEVELS: Final = (lambda_.ApplicationLogLevel.INFO, lambda_.ApplicationLogLevel.DEBUG)


def build_bucket(scope: StreamAggregator, retention: Duration) -> s3.IBucket:
    """Build the bucket for batches that Lambda gives up on."""
    bucket = s3.Bucket(
        scope,
        "OnFailureBucket",
        encryption=s3.BucketEncryption.S3_MANAGED,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        enforce_ssl=True,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        lifecycle_rules=[
            s3.LifecycleRule(expiration=retention, abort_incomplete_multipart_upload_after=Duration.days(1))
        ],
        removal_policy=RemovalPolicy.RETAIN,
    )
    acknowledge(bucket, "S1", "Only the Lambda service writes here, and only when counting failed for a day.")
    return bucket


def build_role(
    scope: StreamAggregator, table: DedupCounterTable, log_group: logs.ILogGroup, bucket: s3.IBucket
) -> iam.Role:
    """Build the role of the function; the event source mapping acts with it too."""
    role = build_function_role(scope, "Role", log_group, "Reads the stream of a table and writes counts to the table")
    grant_aggregation(table.table, role)
    # All keys: Lambda documents below which prefix it writes, but not for which keys it checks the role beforehand.
    objects = bucket.arn_for_objects("*")
    role.add_to_policy(iam.PolicyStatement(actions=["s3:ListBucket"], resources=[bucket.bucket_arn]))
    role.add_to_policy(iam.PolicyStatement(actions=["s3:PutObject"], resources=[objects]))
    if bucket.encryption_key is not None:
        bucket.encryption_key.grant_encrypt_decrypt(role)
    acknowledge(role, "IAM5", "Lambda chooses the keys, in this bucket only.", resource_finding(scope, objects))
    if table.table.encryption_key is not None or bucket.encryption_key is not None:
        acknowledge_key(role)
    return role


def build_environment(
    scope: StreamAggregator, table: DedupCounterTable, declarations: Registration, quarantine_retention: Duration
) -> dict[str, str]:
    """Build the environment of the function: what its handler is told."""
    environment = {
        "TABLE_NAME": table.table_name,
        "DECLARATIONS": Lazy.string(_Declarations(declarations)),
        "QUARANTINE_RETENTION_DAYS": Tokenization.stringify_number(quarantine_retention.to_days()),
    }
    if emulated(scope):
        environment["SINGLE_SHARD"] = "true"
    return environment


def build_mapping(
    scope: StreamAggregator,
    table: DedupCounterTable,
    function: lambda_.Function,
    bucket: s3.IBucket,
    *,
    batch_size: int,
    max_batching_window: Duration,
) -> lambda_.EventSourceMapping:
    """Build what connects the function to the stream."""
    mapping = lambda_.EventSourceMapping(
        scope,
        "EventSourceMapping",
        target=function,
        event_source_arn=table.table_stream_arn,
        # LATEST could miss events that are accepted while the mapping is created.
        starting_position=lambda_.StartingPosition.TRIM_HORIZON,
        batch_size=batch_size,
        max_batching_window=max_batching_window,
        # Lambda names the shard of a batch only if there is a tumbling window; its state is not used. The longest one
        # cuts the fewest batches short. It rules out filters and a parallelization factor.
        tumbling_window=Duration.minutes(15),
        bisect_batch_on_error=True,
        metrics_config=lambda_.MetricsConfig(metrics=[lambda_.MetricType.EVENT_COUNT]),
    )
    resource = mapping.node.default_child
    assert isinstance(resource, lambda_.CfnEventSourceMapping)
    # Until the record expires: a batch that is discarded is a wrong count. Both are Lambda's defaults, said aloud.
    resource.maximum_retry_attempts = -1
    resource.maximum_record_age_in_seconds = -1
    # CDK's own S3OnFailureDestination grants more than Lambda needs; build_role grants that.
    resource.destination_config = lambda_.CfnEventSourceMapping.DestinationConfigProperty(
        on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(destination=bucket.bucket_arn)
    )
    return mapping


def watches(scope: StreamAggregator, *, monitoring: bool) -> tuple[Watch, ...]:
    """Give the alarms: each says that a count is, or is about to be, wrong; with monitoring, or late or dear."""
    always = (
        Watch(
            "LagAlarm",
            scope.metric_iterator_age(),
            Duration.hours(1).to_milliseconds(),
            "Counting lags an hour behind the events; at 24 hours records are lost.",
        ),
        Watch(
            "QuarantineAlarm",
            scope.metric_quarantined(),
            1,
            "Records that cannot be counted were quarantined; repair and redrive them.",
        ),
        Watch(
            "GivenUpAlarm",
            scope.metric_given_up(),
            1,
            "Lambda gave up on records and put them into the on-failure bucket; their counts are missing.",
        ),
        Watch(
            "DroppedAlarm",
            scope.metric_dropped(),
            1,
            "Lambda gave up on records and could not put them into the on-failure bucket; they are lost.",
        ),
    )
    if not monitoring:
        return always
    return (
        *always,
        Watch("ErrorsAlarm", scope.metric_errors(), 1, "Batches fail and are delivered again; counting waits.", 3),
        Watch("ThrottlesAlarm", scope.metric_throttles(), 1, "Lambda's concurrency keeps batches waiting.", 3),
        Watch("LateAlarm", scope.metric_late_events(), 1, "Events came after their window's retention."),
        Watch(
            "CoalescingAlarm",
            scope.metric_updates_per_record(),
            10,
            "A record changes ten items or more on average for an hour: a longer batching window costs less.",
            12,
        ),
    )


def graphs(scope: StreamAggregator) -> dict[str, list[cloudwatch.Metric]]:
    """Give what the dashboard shows."""
    return {
        "Lag (ms)": [scope.metric_iterator_age()],
        "Counted": [scope.metric_records(), scope.metric_items_updated(), scope.metric_already_counted()],
        "Not counted": [scope.metric_quarantined(), scope.metric_late_events()],
        "Given up": [scope.metric_given_up(), scope.metric_dropped()],
        "Function": [scope.metric_errors(), scope.metric_throttles()],
        "Cost": [scope.metric_write_units(), scope.metric_updates_per_record()],
    }


@jsii.implements(IStableStringProducer)
class _Declarations:
    def __init__(self, registration: Registration) -> None:
        self._registration = registration

    def produce(self) -> str:
        return encode(self._registration.declarations)
