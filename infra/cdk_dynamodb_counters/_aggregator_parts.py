"""The parts of a `StreamAggregator`, each built by one function."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from aws_cdk import Annotations, Duration, RemovalPolicy, Stack, Token, Tokenization
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_dynamodb_counters._functions import Observed, is_emulated
from cdk_dynamodb_counters._functions import build_role as build_function_role
from cdk_dynamodb_counters._grants import grant
from cdk_dynamodb_counters._metrics import AggregatorMetrics, of_function, of_mapping
from cdk_dynamodb_counters._monitoring import AlarmSpec
from cdk_dynamodb_counters._nag import acknowledge, acknowledge_resource
from cdk_dynamodb_counters._registry import Registration
from cdk_dynamodb_counters._synth import late_number, late_text, late_value
from dynamodb_counters._assumptions import GIVEN_UP_AFTER
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import described, encode

_FEWEST_DAYS: Final = 7
"""Days that an object is kept: two would be over after a weekend, before somebody looks."""
_MOST_DAYS: Final = 30
"""It may hold a person's events, and no erasure looks into it."""
_DAY: Final = Duration.days(1).to_seconds()
_VERIFICATIONS: Final = 2
_LONGEST_VERIFICATION: Final = 24
"""Hours: it is given up after 20."""
_LONGEST_LOOK: Final = 7 * 24
"""Hours that CloudWatch looks back."""
_QUARTER: Final = Duration.minutes(15)
_QUARTERS: Final = 3
"""After so many without a sign of life, an alarm fires."""
_FIVE_MINUTES: Final = 9
"""As long."""
_MISSING: Final = cloudwatch.TreatMissingData


def kept_days(registration: Registration, *retentions: Duration) -> float:
    """How many days objects of the on-failure bucket are kept: no longer than the table's events, but to repair them.

    Only at synth are all events declared.
    """
    known = [retention.to_days() for retention in retentions if not retention.is_unresolved()]
    events = [*(declared.source for declared in registration.declarations), *registration.events]
    kept = [
        event.retention.total_seconds() / _DAY
        for event in events
        if isinstance(event, Event) and event.retention is not None
    ]
    return max(_FEWEST_DAYS, math.ceil(min([_MOST_DAYS, *known, *kept])))


def build_bucket(scope: Construct, days: Callable[[], float]) -> s3.IBucket:
    """Build the on-failure bucket, which keeps objects for as many days as are known at synth."""
    bucket = s3.Bucket(
        scope,
        "OnFailureBucket",
        encryption=s3.BucketEncryption.S3_MANAGED,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        enforce_ssl=True,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        lifecycle_rules=[
            s3.LifecycleRule(
                expiration=Duration.days(late_number(days)), abort_incomplete_multipart_upload_after=Duration.days(1)
            )
        ],
        removal_policy=RemovalPolicy.RETAIN,
    )
    acknowledge(bucket, "S1", "Only the Lambda service writes here, and only after counting has failed for 23 hours.")
    return bucket


def build_role(
    scope: Observed,
    table: dynamodb.ITable,
    source_table: dynamodb.ITable | None,
    bucket: s3.IBucket,
) -> iam.Role:
    role = build_function_role(scope, "Role", "Reads a table's stream and writes counts to the table")
    grant_stream(role, table)
    if source_table is not None:
        grant_stream(role, source_table)
        arn = _arn_of(source_table)
        role.add_to_policy(iam.PolicyStatement(actions=["dynamodb:DescribeTable"], resources=[arn]))
        if source_table.encryption_key is not None:
            source_table.encryption_key.grant_decrypt(role)
    grant(table, role, "BatchGetItem", "DescribeTable", "GetItem", "PartiQLUpdate", "PutItem", "Query", "UpdateItem")
    grant_failures(role, bucket)
    return role


def grant_stream(role: iam.Role, table: dynamodb.ITable) -> None:
    """Allow Lambda to read a table's stream for a function of the role."""
    stream = [f"dynamodb:{action}" for action in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")]
    role.add_to_policy(iam.PolicyStatement(actions=stream, resources=[str(table.table_stream_arn)]))


def grant_failures(role: iam.Role, bucket: s3.IBucket) -> None:
    """Allow Lambda to put batches that it gives up on into the bucket."""
    # All keys: Lambda documents the prefix it writes below, but not the keys for which it checks the role beforehand.
    objects = bucket.arn_for_objects("*")
    role.add_to_policy(iam.PolicyStatement(actions=["s3:ListBucket"], resources=[bucket.bucket_arn]))
    role.add_to_policy(iam.PolicyStatement(actions=["s3:PutObject"], resources=[objects]))
    if bucket.encryption_key is not None:
        bucket.encryption_key.grant_encrypt_decrypt(role)
    elif not isinstance(bucket.node.default_child, s3.CfnBucket):
        Annotations.of(role).add_info(
            f"If a KMS key encrypts the imported bucket {bucket.node.path!r}, import it with encryption_key=, or what "
            "Lambda gives up on after 23 hours cannot be stored there and is lost: synth cannot check this."
        )
    acknowledge_resource(role, "Lambda chooses the object keys, in this bucket only.", objects)


def build_environment(
    scope: Construct,
    table: dynamodb.ITable,
    registration: Registration,
    quarantine_retention: Duration,
    bucket: s3.IBucket,
    *,
    source_table: dynamodb.ITable | None,
) -> dict[str, str]:
    environment = {
        "TABLE_NAME": table.table_name,
        "DECLARATIONS": late_text(lambda: encode(registration.armed, attributes=True)),
        "QUARANTINE_RETENTION_DAYS": Tokenization.stringify_number(quarantine_retention.to_days()),
        "ON_FAILURE_BUCKET": bucket.bucket_name,
    }
    if source_table is not None:
        environment["SOURCE_TABLE_ARN"] = _arn_of(source_table)
    if is_emulated(scope):
        environment |= {"SINGLE_SHARD": "true", "BULK_BY_PUT": "true"}
    return environment


def summarize(function: lambda_.Function, registration: Registration) -> None:
    """Write what is declared into the template as JSON: ``cdk diff`` then shows what a deployment changes."""
    resource = function.node.default_child
    assert isinstance(resource, lambda_.CfnFunction)
    document = late_value(lambda: described((*registration.events, *registration.declarations)))
    resource.add_metadata("Declarations", document)


def _arn_of(table: dynamodb.ITable) -> str:
    """Return a table's ARN; for an import, the one within its stream's ARN, as in records."""
    stream = str(table.table_stream_arn)
    return table.table_arn if Token.is_unresolved(stream) else stream.partition("/stream/")[0]


def build_rules(scope: Observed) -> lambda_.Alias | None:
    """Build the rules that invoke the function next to its stream; return what watches, None as no emulator has any."""
    if is_emulated(scope):
        return None
    _build_registration(scope)
    return _build_watch(scope)


def _build_registration(scope: Observed) -> events.Rule:
    """Build the rule that registers new names once a deployment is complete, and not at its first batch."""
    return events.Rule(
        scope,
        "Deployed",
        description="Registers the names that a deployment of this stack has brought",
        event_pattern=completion_of(Stack.of(scope)),
        targets=[targets.LambdaFunction(scope.function)],
    )


def completion_of(stack: Stack) -> events.EventPattern:
    """Return the pattern of the event that a deployment of a stack is complete.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/event-detail-stack-status-change.html
    """
    return events.EventPattern(
        source=["aws.cloudformation"],
        detail_type=["CloudFormation Stack Status Change"],
        detail={
            "stack-id": [stack.stack_id],
            "status-details": {"status": ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"]},
        },
    )


def _build_watch(scope: Observed) -> lambda_.Alias:
    """Build the rule that has the function report what waits for repair, by an alias, which has metrics of its own."""
    alias = lambda_.Alias(scope, "WatchAlias", alias_name="watch", version=scope.function.latest_version)
    events.Rule(
        scope,
        "Watch",
        description="Counts what waits in quarantine and in the on-failure bucket",
        schedule=events.Schedule.rate(_QUARTER),
        targets=[targets.LambdaFunction(alias)],
    )
    return alias


def build_mapping(
    scope: Observed,
    construct_id: str,
    table: dynamodb.ITable,
    bucket: s3.IBucket,
    *,
    batch_size: float,
    max_batching_window: Duration,
    filters: Sequence[Mapping[str, Any]] | None = None,
) -> lambda_.EventSourceMapping:
    """Build a mapping that names each batch's shard; with filters, one whose function says what it could not do."""
    mapping = lambda_.EventSourceMapping(
        scope,
        construct_id,
        target=scope.function,
        event_source_arn=str(table.table_stream_arn),
        # LATEST could miss events accepted while the mapping is being created.
        starting_position=lambda_.StartingPosition.TRIM_HORIZON,
        batch_size=batch_size,
        max_batching_window=max_batching_window,
        # Lambda names a batch's shard only with a tumbling window, whose end moves the shard's checkpoint. The longest
        # window cuts the fewest batches short. Filters and a parallelization factor are then not possible.
        tumbling_window=None if filters else Duration.minutes(15),
        filters=filters,
        report_batch_item_failures=bool(filters) or None,
        bisect_batch_on_error=True,
        metrics_config=lambda_.MetricsConfig(metrics=[lambda_.MetricType.EVENT_COUNT]),
    )
    resource = mapping.node.default_child
    assert isinstance(resource, lambda_.CfnEventSourceMapping)
    # Retry as long as possible: a discarded batch is a wrong count. Lambda hands over only what exceeds a limit that is
    # set; what the stream forgets after 24 hours vanishes, unmetered. So give up before the stream does.
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    resource.maximum_retry_attempts = -1
    resource.maximum_record_age_in_seconds = GIVEN_UP_AFTER
    # CDK's S3OnFailureDestination would grant more than Lambda needs; build_role grants enough.
    resource.destination_config = lambda_.CfnEventSourceMapping.DestinationConfigProperty(
        on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(destination=bucket.bucket_arn)
    )
    return mapping


def alarm_specs(
    metrics: AggregatorMetrics,
    *,
    watch: lambda_.Alias | None,
    verify_every: Duration | None,
) -> tuple[AlarmSpec, ...]:
    """Return the alarms for counts that are or will be wrong."""
    specs: tuple[AlarmSpec, ...] = (
        AlarmSpec(
            "LagAlarm",
            metrics.metric_iterator_age(),
            Duration.hours(1).to_milliseconds(),
            "Counting is an hour behind the events. At 23 hours, Lambda gives up on records.",
        ),
        polling("PollingAlarm", metrics.event_source_mapping, "the stream"),
        AlarmSpec(
            "DroppedAlarm",
            of_function(metrics.function, "DestinationDeliveryFailures"),
            1,
            "Lambda gave up on records and could not send them to the on-failure bucket. They are lost.",
        ),
        _waiting(
            "UncountedAlarm",
            metrics.metric_uncounted(),
            "Records wait for repair, in quarantine or in the on-failure bucket, and counts lack them. The log of the "
            "function says where.",
        ),
    )
    specs += (
        AlarmSpec(
            "DefinitionAlarm",
            metrics.metric("DefinitionChanged", statistic="Maximum"),
            1,
            "Code declares a name otherwise than the table counts it, or one that contradicts what is counted: it is "
            "not counted so. Give it another name. The log of the function names it.",
        ),
    )
    if watch is not None:
        failed = watch.metric_errors(period=_QUARTER)
        specs += (_schedule("WatchAlarm", failed, "looks for records that wait for repair"),)
    if (source := metrics.source_event_source_mapping) is not None:
        specs += (polling("SourcePollingAlarm", source, "the source table's stream"),)
    if verify_every is not None and (verifier := metrics.verifier) is not None:
        specs += (
            AlarmSpec(
                "DriftAlarm",
                metrics.metric("Drift", statistic="Maximum"),
                1,
                "A verification has found groups that differ from their source items. Look at them and repair them.",
                missing=_MISSING.IGNORE,
            ),
            _schedule("VerifierAlarm", of_function(verifier, "Errors", period=_QUARTER), "verifies"),
            *_verifications(metrics, verify_every),
        )
    return specs


def polling(construct_id: str, mapping: lambda_.EventSourceMapping, stream: str) -> AlarmSpec:
    return AlarmSpec(
        construct_id,
        of_mapping(mapping, "PolledEventCount", statistic="SampleCount"),
        1,
        f"Lambda has not polled {stream} for 15 minutes: the mapping is disabled, or its role or a key is broken.",
        3,
        below=True,
        missing=_MISSING.BREACHING,
    )


def _waiting(construct_id: str, metric: cloudwatch.Metric, description: str) -> AlarmSpec:
    """Describe an alarm on what the watch reports while it finds something, every 15 minutes."""
    return AlarmSpec(construct_id, metric, 1, description, _FIVE_MINUTES, once=True)


def _schedule(construct_id: str, errors: cloudwatch.Metric, does: str) -> AlarmSpec:
    """Describe an alarm on what only a schedule invokes: Lambda meters the errors of each invocation, 0 if none."""
    return AlarmSpec(
        construct_id,
        errors,
        1,
        f"For 45 minutes, the function that {does} has failed, or has not run.",
        _QUARTERS,
        missing=_MISSING.BREACHING,
    )


def _verifications(metrics: AggregatorMetrics, every: Duration) -> Iterator[AlarmSpec]:
    """Yield the alarm on verifications that do not come to an end, unless CloudWatch cannot look back so far."""
    hours = 0 if every.is_unresolved() else _VERIFICATIONS * int(every.to_hours()) + _LONGEST_VERIFICATION
    if 0 < hours <= _LONGEST_LOOK:
        yield AlarmSpec(
            "VerificationAlarm",
            metrics.metric("GroupsVerified", period=Duration.hours(1), statistic="SampleCount"),
            1,
            "Two verifications are due that have not come to an end.",
            hours,
            below=True,
            missing=_MISSING.BREACHING,
        )


def graphs(metrics: AggregatorMetrics) -> dict[str, list[cloudwatch.Metric]]:
    mappings = [
        each for each in (metrics.event_source_mapping, metrics.source_event_source_mapping) if each is not None
    ]
    return {
        "Lag (ms)": [metrics.metric_iterator_age()],
        "Counted": [metrics.metric_records(), metrics.metric("ItemsUpdated"), metrics.metric("AlreadyCounted")],
        "Not counted": [metrics.metric("Quarantined"), metrics.metric("LateEvents")],
        "Waiting for repair": [metrics.metric_uncounted()],
        "Polled": [of_mapping(one, "PolledEventCount") for one in mappings],
        "On failure": [
            *(of_mapping(one, "OnFailureDestinationDeliveredEventCount") for one in mappings),
            of_function(metrics.function, "DestinationDeliveryFailures"),
        ],
        "Function": [of_function(metrics.function, "Errors"), of_function(metrics.function, "Throttles")],
        "Cost": [metrics.metric("WriteUnits")],
    }
