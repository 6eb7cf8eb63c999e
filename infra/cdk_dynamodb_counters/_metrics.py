"""CloudWatch metrics of the constructs."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from cdk_dynamodb_counters._arguments import require_duration, require_instance
from dynamodb_counters._items.table_schema import RANKING_INDEX

NAMESPACE: Final = "DynamoDBCounters"
"""CloudWatch namespace of the runtime's own metrics."""


def runtime_metric(name: str, service_name: str, period: Duration | None, statistic: str) -> cloudwatch.Metric:
    """Return a metric that the runtime emits under a service name."""
    return _metric(NAMESPACE, name, {"service": service_name}, period, statistic)


class Metrics:
    """CloudWatch metrics for graphs and alarms.

    Every ``metric_*`` method takes ``period``, from 1 second to 1 day (default: 5 minutes), and ``statistic``, such as
    ``"Sum"``, ``"Maximum"`` or ``"p99"`` (default: as in its signature).
    """


class TableMetrics(Metrics):
    """Metrics of a table."""

    _table: dynamodb.ITable

    def metric_consumed_write_units(
        self, *, period: Duration | None = None, statistic: str = "Sum"
    ) -> cloudwatch.Metric:
        """Count write units that events and counts consumed."""
        return self._of_table("ConsumedWriteCapacityUnits", period, statistic)

    def metric_consumed_read_units(
        self, *, period: Duration | None = None, statistic: str = "Sum"
    ) -> cloudwatch.Metric:
        """Count read units consumed."""
        return self._of_table("ConsumedReadCapacityUnits", period, statistic)

    def metric_write_throttles(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count writes that DynamoDB throttled."""
        return self._of_table("WriteThrottleEvents", period, statistic)

    def metric_read_throttles(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count reads that DynamoDB throttled."""
        return self._of_table("ReadThrottleEvents", period, statistic)

    def metric_rejected_writes(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count writes refused by their condition: repeated events and redelivered batches."""
        return self._of_table("ConditionalCheckFailedRequests", period, statistic)

    def metric_ranking_throttles(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count writes that the ranking index throttled, and with it the table."""
        dimensions = {"TableName": self._table.table_name, "GlobalSecondaryIndexName": RANKING_INDEX}
        return _metric("AWS/DynamoDB", "WriteThrottleEvents", dimensions, period, statistic)

    def _of_table(self, name: str, period: Duration | None, statistic: str) -> cloudwatch.Metric:
        return _metric("AWS/DynamoDB", name, {"TableName": self._table.table_name}, period, statistic)


class FunctionMetrics(Metrics):
    """Metrics of a construct's function."""

    _function: lambda_.Function
    _service_name: str

    def metric_errors(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count failed invocations; a failed batch is delivered again."""
        return self._of_function("Errors", period, statistic)

    def metric_throttles(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count invocations refused for lack of Lambda concurrency; a refused batch waits."""
        return self._of_function("Throttles", period, statistic)

    def _of_function(self, name: str, period: Duration | None, statistic: str) -> cloudwatch.Metric:
        return _metric("AWS/Lambda", name, {"FunctionName": self._function.function_name}, period, statistic)

    def _of_runtime(self, name: str, period: Duration | None, statistic: str) -> cloudwatch.Metric:
        return runtime_metric(name, self._service_name, period, statistic)


class SecondFunctionMetrics(FunctionMetrics):
    """Metrics of another function of a construct."""

    def __init__(self, function: lambda_.Function, service_name: str) -> None:
        self._function, self._service_name = function, service_name


class MappingMetrics(Metrics):
    """Metrics of an event source mapping."""

    _mapping: lambda_.EventSourceMapping

    def metric_polled(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count records polled: zero while the stream is idle, no data while the mapping is disabled or broken."""
        return self._of_mapping("PolledEventCount", period, statistic)

    def metric_given_up(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count records that Lambda gave up on and sent to the on-failure bucket, where they wait for you."""
        return self._of_mapping("OnFailureDestinationDeliveredEventCount", period, statistic)

    def _of_mapping(self, name: str, period: Duration | None, statistic: str) -> cloudwatch.Metric:
        dimensions = {"EventSourceMappingUUID": self._mapping.event_source_mapping_id}
        return _metric("AWS/Lambda", name, dimensions, period, statistic)


class SourceMetrics(MappingMetrics):
    """Metrics of the mapping that reads the stream of a source table."""

    def __init__(self, mapping: lambda_.EventSourceMapping) -> None:
        self._mapping = mapping


class AggregatorMetrics(FunctionMetrics, MappingMetrics):
    """Metrics of a `StreamAggregator`."""

    _source_metrics: SourceMetrics | None
    _verifier: lambda_.Function | None

    @property
    def verifier_metrics(self) -> SecondFunctionMetrics | None:
        """Metrics of the function that verifies; None without ``verify_every``."""
        return None if self._verifier is None else SecondFunctionMetrics(self._verifier, self._service_name)

    @property
    def source_metrics(self) -> SourceMetrics | None:
        """Metrics of the mapping of the source table's stream; None without one."""
        return self._source_metrics

    def metric_iterator_age(self, *, period: Duration | None = None, statistic: str = "Maximum") -> cloudwatch.Metric:
        """How far counting lags behind the events, in milliseconds; at 23 hours Lambda gives up on records."""
        return self._of_function("IteratorAge", period, statistic)

    def metric_dropped(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count batches that Lambda could not even send to the on-failure bucket; counts lack them for good."""
        return self._of_function("DestinationDeliveryFailures", period, statistic)

    def metric_drift(self, *, period: Duration | None = None, statistic: str = "Maximum") -> cloudwatch.Metric:
        """Count groups that differ from their source items, by verification."""
        return self._of_runtime("Drift", period, statistic)

    def metric_unknown(self, *, period: Duration | None = None, statistic: str = "Maximum") -> cloudwatch.Metric:
        """Count groups that differ from source items which cannot show whether they should, by verification."""
        return self._of_runtime("GroupsUnknown", period, statistic)

    def metric_groups_verified(
        self, *, period: Duration | None = None, statistic: str = "Maximum"
    ) -> cloudwatch.Metric:
        """Count groups that a verification has compared with their source items."""
        return self._of_runtime("GroupsVerified", period, statistic)

    def metric_records(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count stream records read."""
        return self._of_runtime("Records", period, statistic)

    def metric_items_updated(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count updates of aggregate and window items."""
        return self._of_runtime("ItemsUpdated", period, statistic)

    def metric_updates_per_record(
        self, *, period: Duration | None = None, statistic: str = "Average"
    ) -> cloudwatch.Metric:
        """Items updated per record, of batches with ten or more: a longer batching window would cost less."""
        return self._of_runtime("UpdatesPerRecord", period, statistic)

    def metric_already_counted(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count updates skipped because a redelivered batch was already counted."""
        return self._of_runtime("AlreadyCounted", period, statistic)

    def metric_redelivered(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count records that were dropped unread because their shard's checkpoint covers them."""
        return self._of_runtime("Redelivered", period, statistic)

    def metric_checkpoints_lost(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count checkpoint items that were deleted by hand; records that may have been counted were quarantined."""
        return self._of_runtime("CheckpointsLost", period, statistic)

    def metric_quarantined(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count records that could not be counted and were quarantined."""
        return self._of_runtime("Quarantined", period, statistic)

    def metric_uncounted(self, *, period: Duration | None = None, statistic: str = "Maximum") -> cloudwatch.Metric:
        """Count entries in quarantine, or objects in the on-failure bucket, that wait for repair."""
        return self._of_runtime("Uncounted", period, statistic)

    def metric_uncounted_expiring(
        self, *, period: Duration | None = None, statistic: str = "Maximum"
    ) -> cloudwatch.Metric:
        """Count those of them that expire within a day."""
        return self._of_runtime("UncountedExpiring", period, statistic)

    def metric_late_events(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count events that arrived after the retention of their window bucket."""
        return self._of_runtime("LateEvents", period, statistic)

    def metric_unknown_types(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count records of items that ``Items`` would count if other code had not given them a ``_type``."""
        return self._of_runtime("UnknownTypes", period, statistic)

    def metric_crossings_skipped(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count changes of groups that may have crossed a threshold, where other code has spoiled the item."""
        return self._of_runtime("CrossingsSkipped", period, statistic)

    def metric_write_units(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count write units that counting consumed."""
        return self._of_runtime("WriteUnits", period, statistic)


class ThresholdMetrics(FunctionMetrics, MappingMetrics):
    """Metrics of `ThresholdEvents`."""

    def metric_iterator_age(self, *, period: Duration | None = None, statistic: str = "Maximum") -> cloudwatch.Metric:
        """How long crossings wait for EventBridge, in milliseconds; at 23 hours Lambda gives up on them."""
        return self._of_function("IteratorAge", period, statistic)

    def metric_dropped(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count batches that Lambda could not even send to the on-failure bucket; their items are still there."""
        return self._of_function("DestinationDeliveryFailures", period, statistic)

    def metric_delivered(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count crossings that EventBridge has taken."""
        return self._of_runtime("CrossingsDelivered", period, statistic)

    def metric_refused(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count refusals by EventBridge; a refused crossing is sent again."""
        return self._of_runtime("CrossingsRefused", period, statistic)

    def metric_undeliverable(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count crossings that EventBridge can never take; their items are still there."""
        return self._of_runtime("CrossingsUndeliverable", period, statistic)


class HttpMetrics(FunctionMetrics):
    """Metrics of a construct with an HTTP API."""

    _http_api: apigateway.HttpApi

    def metric_requests(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count requests."""
        return self._of_api("Count", period, statistic)

    def metric_client_errors(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count requests refused with a 4xx: malformed, unauthorized or throttled."""
        return self._of_api("4xx", period, statistic)

    def metric_server_errors(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count requests that failed with a 5xx."""
        return self._of_api("5xx", period, statistic)

    def metric_latency(self, *, period: Duration | None = None, statistic: str = "p99") -> cloudwatch.Metric:
        """Time to respond, in milliseconds."""
        return self._of_api("Latency", period, statistic)

    def _of_api(self, name: str, period: Duration | None, statistic: str) -> cloudwatch.Metric:
        return _metric("AWS/ApiGateway", name, {"ApiId": self._http_api.api_id}, period, statistic)


class IngestMetrics(HttpMetrics):
    """Metrics of an `EventIngest`."""

    _queue: sqs.Queue
    _dead_letter_queue: sqs.Queue
    _receiver: lambda_.Function | None

    @property
    def receiver_metrics(self) -> SecondFunctionMetrics | None:
        """Metrics of the function that validates requests; None in direct mode."""
        return None if self._receiver is None else SecondFunctionMetrics(self._receiver, self._service_name)

    def metric_waiting_age(self, *, period: Duration | None = None, statistic: str = "Maximum") -> cloudwatch.Metric:
        """Age of the oldest message in the queue, in seconds."""
        return self._of_queue("ApproximateAgeOfOldestMessage", self._queue, period, statistic)

    def metric_dead_letters(self, *, period: Duration | None = None, statistic: str = "Maximum") -> cloudwatch.Metric:
        """Count messages in the dead-letter queue."""
        return self._of_queue("ApproximateNumberOfMessagesVisible", self._dead_letter_queue, period, statistic)

    def metric_dead_letters_age(
        self, *, period: Duration | None = None, statistic: str = "Maximum"
    ) -> cloudwatch.Metric:
        """How long the oldest message has been in the dead-letter queue, in seconds."""
        return self._of_queue("ApproximateAgeOfOldestMessage", self._dead_letter_queue, period, statistic)

    def metric_accepted(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count events accepted."""
        return self._of_runtime("EventsAccepted", period, statistic)

    def metric_duplicates(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count events that had already been accepted."""
        return self._of_runtime("EventsDuplicate", period, statistic)

    def metric_conflicts(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count events that are refused because their key is known with another payload."""
        return self._of_runtime("EventsConflicting", period, statistic)

    def metric_rejected(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count events that can never be accepted."""
        return self._of_runtime("EventsRejected", period, statistic)

    def metric_too_late(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count events that are refused because they are older than their event's retention."""
        return self._of_runtime("EventsTooLate", period, statistic)

    def metric_failed(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Count events that the table refused for now; they are sent again."""
        return self._of_runtime("EventsFailed", period, statistic)

    def metric_oldest_sent_again(
        self, *, period: Duration | None = None, statistic: str = "Maximum"
    ) -> cloudwatch.Metric:
        """How long the oldest event has been waiting that was sent again, in seconds."""
        return self._of_runtime("OldestSentAgain", period, statistic)

    def _of_queue(self, name: str, queue: sqs.Queue, period: Duration | None, statistic: str) -> cloudwatch.Metric:
        return _metric("AWS/SQS", name, {"QueueName": queue.queue_name}, period, statistic)


def _metric(
    namespace: str, name: str, dimensions: dict[str, str], period: Duration | None, statistic: str
) -> cloudwatch.Metric:
    period = Duration.minutes(5) if period is None else period
    require_duration("period", period, Duration.seconds(1), Duration.days(1))
    require_instance("statistic", statistic, str, "a CloudWatch statistic such as 'Sum', 'Maximum' or 'p99'")
    return cloudwatch.Metric(
        namespace=namespace, metric_name=name, dimensions_map=dimensions, period=period, statistic=statistic
    )
