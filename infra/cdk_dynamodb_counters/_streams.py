"""Constructs that read a table's stream: mapping, permissions, and the bucket for what Lambda gives up on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aws_cdk import Annotations, Duration, RemovalPolicy, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_dynamodb_counters._arguments import require_instance, require_member
from cdk_dynamodb_counters._functions import Observed, of_mapping
from cdk_dynamodb_counters._synth import acknowledge, acknowledge_resource, late_value
from cdk_dynamodb_counters._tables import TableDeclarations, require_same_place, require_stream
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
from dynamodb_counters._assumptions import GIVEN_UP_AFTER
from dynamodb_counters._declarations import Event
from dynamodb_counters.errors import InvalidArgumentError

_FEWEST_DAYS: Final = 7
"""Days that an object is kept: two would be over after a weekend, before somebody looks."""
_MOST_DAYS: Final = 30
"""It may hold a person's events, and no erasure looks into it."""
_DAY: Final = Duration.days(1).to_seconds()
_OWNER: Final = "_counters_owner"


def grant_stream(role: iam.Role, table: dynamodb.ITable) -> None:
    """Allow Lambda to read a table's stream for a function of the role."""
    stream = [f"dynamodb:{action}" for action in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")]
    role.add_to_policy(iam.PolicyStatement(actions=stream, resources=[str(table.table_stream_arn)]))


class StreamReader(Observed):
    """A construct whose function reads a table's stream."""

    event_source_mapping: lambda_.EventSourceMapping
    """The mapping that invokes the function with the records of the table's stream."""
    on_failure_bucket: s3.IBucket
    """The bucket for batches that Lambda gave up on."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        table: DedupCounterTable,
        options: lambda_.FunctionOptions | None,
        alarm_actions: Sequence[cloudwatch.IAlarmAction],
        *,
        service_name: str | None,
    ) -> None:
        require_instance("table", table, DedupCounterTable)
        require_stream("table", table.table)
        super().__init__(scope, construct_id, service_name, options, alarm_actions)
        require_same_place("table", self, table.table)
        self._table = table.table
        self._declarations = TableDeclarations.of(table.table)

    def _use_bucket(self, bucket: s3.IBucket | None, *retentions: Duration, counts: bool) -> None:
        """Use a bucket, or build one; refuse to share that of an aggregator, which counts all in it as uncounted."""
        if bucket is None:
            bucket = s3.Bucket(
                self,
                "OnFailureBucket",
                encryption=s3.BucketEncryption.S3_MANAGED,
                block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
                enforce_ssl=True,
                object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
                lifecycle_rules=[
                    s3.LifecycleRule(
                        expiration=Duration.days(Token.as_number(late_value(lambda: self._kept_days(*retentions)))),
                        abort_incomplete_multipart_upload_after=Duration.days(1),
                    )
                ],
                removal_policy=RemovalPolicy.RETAIN,
            )
            reason = "Only the Lambda service writes here, and only after counting has failed for 23 hours."
            acknowledge(bucket, "S1", reason)
        require_member("on_failure_bucket", bucket, "bucket_arn", "a Bucket")
        owner, owner_counts = vars(bucket).setdefault(_OWNER, (self, counts))
        if owner is not self and (counts or owner_counts):
            allowed = f"another bucket than {owner.node.path!r} has: an aggregator takes all in its own for uncounted"
            raise InvalidArgumentError("on_failure_bucket", bucket.node.path, allowed)
        self.on_failure_bucket = bucket

    def _kept_days(self, *retentions: Duration) -> float:
        """Return for how many days the bucket keeps objects: no longer than the table's events, but to repair them.

        Only at synth are all events declared.
        """
        limits = [retention.to_days() for retention in retentions if not retention.is_unresolved()]
        events = [*(declared.source for declared in self._declarations.declarations), *self._declarations.events]
        lasting = [event.retention for event in events if isinstance(event, Event) and event.retention is not None]
        days = [retention.total_seconds() / _DAY for retention in lasting]
        return max(_FEWEST_DAYS, math.ceil(min([_MOST_DAYS, *limits, *days])))

    def _grant_failures(self, role: iam.Role) -> None:
        """Allow Lambda to put batches that it gives up on into the bucket."""
        bucket = self.on_failure_bucket
        # All keys: Lambda documents the prefix it writes below, but not the keys for which it checks the role before.
        objects = bucket.arn_for_objects("*")
        role.add_to_policy(iam.PolicyStatement(actions=["s3:ListBucket"], resources=[bucket.bucket_arn]))
        role.add_to_policy(iam.PolicyStatement(actions=["s3:PutObject"], resources=[objects]))
        if bucket.encryption_key is not None:
            bucket.encryption_key.grant_encrypt_decrypt(role)
        elif not isinstance(bucket.node.default_child, s3.CfnBucket):
            Annotations.of(role).add_info(
                f"If a KMS key encrypts the imported bucket {bucket.node.path!r}, import it with encryption_key=, or "
                "what Lambda gives up on after 23 hours cannot be stored there and is lost: synth cannot check this."
            )
        acknowledge_resource(role, "Lambda chooses the object keys, in this bucket only.", objects)

    def _build_mapping(
        self,
        construct_id: str,
        table: dynamodb.ITable,
        batch_size: float,
        max_batching_window: Duration,
        *,
        is_metered: bool,
        filters: Sequence[Mapping[str, Any]] = (),
    ) -> lambda_.EventSourceMapping:
        """Build a mapping that names each batch's shard; with filters, one whose function says what it could not do."""
        mapping = lambda_.EventSourceMapping(
            self,
            construct_id,
            target=self.function,
            event_source_arn=str(table.table_stream_arn),
            # LATEST could miss events accepted while the mapping is being created.
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            # Lambda names a batch's shard only with a tumbling window, whose end moves the shard's checkpoint. The
            # longest window cuts the fewest batches short. Filters and a parallelization factor are then not possible.
            tumbling_window=None if filters else Duration.minutes(15),
            filters=filters or None,
            report_batch_item_failures=bool(filters) or None,
            bisect_batch_on_error=True,
            # Of its own, each for 0.30 dollars a month.
            metrics_config=lambda_.MetricsConfig(metrics=[lambda_.MetricType.EVENT_COUNT]) if is_metered else None,
            batch_size=batch_size,
            max_batching_window=max_batching_window,
        )
        resource = mapping.node.default_child
        assert isinstance(resource, lambda_.CfnEventSourceMapping)
        # Retry as long as possible: a discarded batch is a wrong count. Lambda hands over only what exceeds a limit;
        # what the stream forgets after 24 hours vanishes, unmetered. So give up before the stream does.
        # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
        resource.maximum_retry_attempts = -1
        resource.maximum_record_age_in_seconds = GIVEN_UP_AFTER
        # CDK's S3OnFailureDestination would grant more than Lambda needs; build_role grants enough.
        resource.destination_config = lambda_.CfnEventSourceMapping.DestinationConfigProperty(
            on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(destination=self.on_failure_bucket.bucket_arn)
        )
        return mapping

    def _add_polling_alarm(self, construct_id: str, mapping: lambda_.EventSourceMapping, stream: str) -> None:
        self._add_alarm(
            construct_id,
            of_mapping(mapping, "PolledEventCount", statistic="SampleCount"),
            f"Lambda has not polled {stream} for 15 minutes: the mapping is disabled, or its role or a key is broken.",
            evaluation_periods=3,
            below=True,
        )
