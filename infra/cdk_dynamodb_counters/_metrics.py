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

NAMESPACE: Final = "DynamoDBCounters"
"""CloudWatch namespace of the runtime's own metrics."""


def counters_metric(name: str, service_name: str, period: Duration | None, statistic: str) -> cloudwatch.Metric:
    """Give a metric that the aggregator's function emits."""
    return _metric(NAMESPACE, name, {"service": service_name}, period, statistic)


class TableMetrics:
    """Metrics of a table. Each is a sum over five minutes unless told otherwise."""

    _table: dynamodb.ITableV2

    def metric_consumed_write_units(
        self, *, period: Duration | None = None, statistic: str = "Sum"
    ) -> cloudwatch.Metric:
        """Give the write units that events and counts consumed together.

        Parameters
        ----------
        period : Duration, optional
            Default: 5 minutes.
        statistic : str, optional
            Default: the sum.

        Returns
        -------
        Metric
            For a graph or an alarm.

        Examples
        --------
        >>> counters.metric_consumed_write_units(period=Duration.minutes(1))  # doctest: +SKIP
        """
        return self._of_table("ConsumedWriteCapacityUnits", period, statistic)

    def metric_consumed_read_units(
        self, *, period: Duration | None = None, statistic: str = "Sum"
    ) -> cloudwatch.Metric:
        """Give the read units consumed. Parameters as for `metric_consumed_write_units`."""
        return self._of_table("ConsumedReadCapacityUnits", period, statistic)

    def metric_write_throttles(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the writes DynamoDB throttled. Parameters as for `metric_consumed_write_units`."""
        return self._of_table("WriteThrottleEvents", period, statistic)

    def metric_read_throttles(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the reads DynamoDB throttled. Parameters as for `metric_consumed_write_units`."""
        return self._of_table("ReadThrottleEvents", period, statistic)

    def metric_rejected_writes(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the conditional writes refused: repeated events and redelivered batches.

        Parameters as for `metric_consumed_write_units`.
        """
        return self._of_table("ConditionalCheckFailedRequests", period, statistic)

    def _of_table(self, name: str, period: Duration | None, statistic: str) -> cloudwatch.Metric:
        return _metric("AWS/DynamoDB", name, {"TableName": self._table.table_name}, period, statistic)


class _OfFunction:
    _function: lambda_.Function

    def _of_function(self, name: str, period: Duration | None, statistic: str) -> cloudwatch.Metric:
        return _metric("AWS/Lambda", name, {"FunctionName": self._function.function_name}, period, statistic)


class AggregatorMetrics(_OfFunction):
    """Metrics of an aggregator. Each is a sum over five minutes unless told otherwise."""

    _mapping: lambda_.EventSourceMapping
    _service_name: str

    def metric_iterator_age(self, *, period: Duration | None = None, statistic: str = "Maximum") -> cloudwatch.Metric:
        """Give how far counting lags behind the events, in milliseconds. At 24 hours records are lost.

        Parameters
        ----------
        period : Duration, optional
            Default: 5 minutes.
        statistic : str, optional
            Default: the maximum.

        Returns
        -------
        Metric
            For a graph or an alarm.
        """
        return self._of_function("IteratorAge", period, statistic)

    def metric_errors(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the batches that failed and are delivered again. Parameters as for `metric_iterator_age`."""
        return self._of_function("Errors", period, statistic)

    def metric_throttles(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the batches that waited because of Lambda's concurrency. Parameters as for `metric_iterator_age`."""
        return self._of_function("Throttles", period, statistic)

    def metric_given_up(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the records Lambda gave up on and put into the bucket: they are missing from counts until repaired.

        Parameters as for `metric_iterator_age`.
        """
        return self._of_mapping("OnFailureDestinationDeliveredEventCount", period, statistic)

    def metric_dropped(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the records Lambda gave up on and could not put into the bucket: they are missing from counts for good.

        Parameters as for `metric_iterator_age`.
        """
        return self._of_mapping("DroppedEventCount", period, statistic)

    def metric_records(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the stream records read. Parameters as for `metric_iterator_age`."""
        return counters_metric("Records", self._service_name, period, statistic)

    def metric_items_updated(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the updates of aggregate and window items. Parameters as for `metric_iterator_age`."""
        return counters_metric("ItemsUpdated", self._service_name, period, statistic)

    def metric_updates_per_record(
        self, *, period: Duration | None = None, statistic: str = "Average"
    ) -> cloudwatch.Metric:
        """Give how many items a record changes, on average of batches: the fewer, the better batches coalesce.

        Parameters as for `metric_iterator_age`.
        """
        return counters_metric("UpdatesPerRecord", self._service_name, period, statistic)

    def metric_already_counted(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give what was redelivered and not counted again. Parameters as for `metric_iterator_age`."""
        return counters_metric("AlreadyCounted", self._service_name, period, statistic)

    def metric_quarantined(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the records that cannot be counted and were put aside. Parameters as for `metric_iterator_age`."""
        return counters_metric("Quarantined", self._service_name, period, statistic)

    def metric_late_events(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the events whose window bucket was over. Parameters as for `metric_iterator_age`."""
        return counters_metric("LateEvents", self._service_name, period, statistic)

    def metric_write_units(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the write units that counting consumed. Parameters as for `metric_iterator_age`."""
        return counters_metric("WriteUnits", self._service_name, period, statistic)

    def _of_mapping(self, name: str, period: Duration | None, statistic: str) -> cloudwatch.Metric:
        dimensions = {"EventSourceMappingUUID": self._mapping.event_source_mapping_id}
        return _metric("AWS/Lambda", name, dimensions, period, statistic)


class HttpMetrics:
    """Metrics of an HTTP API. Each is a sum over five minutes unless told otherwise."""

    _http_api: apigateway.HttpApi

    def metric_requests(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the requests.

        Parameters
        ----------
        period : Duration, optional
            Default: 5 minutes.
        statistic : str, optional
            Default: the sum.

        Returns
        -------
        Metric
            For a graph or an alarm.
        """
        return self._of_api("Count", period, statistic)

    def metric_client_errors(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the requests refused: malformed, unsigned, throttled. Parameters as for `metric_requests`."""
        return self._of_api("4xx", period, statistic)

    def metric_server_errors(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the requests that failed. Parameters as for `metric_requests`."""
        return self._of_api("5xx", period, statistic)

    def metric_latency(self, *, period: Duration | None = None, statistic: str = "p99") -> cloudwatch.Metric:
        """Give how long answers take, in milliseconds. Parameters as for `metric_requests`."""
        return self._of_api("Latency", period, statistic)

    def _of_api(self, name: str, period: Duration | None, statistic: str) -> cloudwatch.Metric:
        return _metric("AWS/ApiGateway", name, {"ApiId": self._http_api.api_id}, period, statistic)


class IngestMetrics(HttpMetrics, _OfFunction):
    """Metrics of an ingest: its API, its queues, and what the runtime says."""

    _queue: sqs.Queue
    _dead_letter_queue: sqs.Queue
    _service_name: str

    def metric_waiting_age(self, *, period: Duration | None = None, statistic: str = "Maximum") -> cloudwatch.Metric:
        """Give how long the oldest message waits, in seconds. Parameters as for `metric_requests`."""
        return self._of_queue("ApproximateAgeOfOldestMessage", self._queue, period, statistic)

    def metric_dead_letters(self, *, period: Duration | None = None, statistic: str = "Maximum") -> cloudwatch.Metric:
        """Give the messages that could not be accepted. Parameters as for `metric_requests`."""
        return self._of_queue("ApproximateNumberOfMessagesVisible", self._dead_letter_queue, period, statistic)

    def metric_errors(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the batches that failed and are delivered again. Parameters as for `metric_requests`."""
        return self._of_function("Errors", period, statistic)

    def metric_throttles(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the batches that waited because of Lambda's concurrency. Parameters as for `metric_requests`."""
        return self._of_function("Throttles", period, statistic)

    def metric_accepted(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the events accepted. Parameters as for `metric_requests`."""
        return counters_metric("EventsAccepted", self._service_name, period, statistic)

    def metric_duplicates(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the events that were known. Parameters as for `metric_requests`."""
        return counters_metric("EventsDuplicate", self._service_name, period, statistic)

    def metric_rejected(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the events that can never be accepted. Parameters as for `metric_requests`."""
        return counters_metric("EventsRejected", self._service_name, period, statistic)

    def _of_queue(self, name: str, queue: sqs.Queue, period: Duration | None, statistic: str) -> cloudwatch.Metric:
        return _metric("AWS/SQS", name, {"QueueName": queue.queue_name}, period, statistic)


class ApiMetrics(HttpMetrics, _OfFunction):
    """Metrics of a counter API: the API's own, its function's, and what the runtime says."""

    _service_name: str

    def metric_errors(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the invocations that raised. Parameters as for `metric_requests`."""
        return self._of_function("Errors", period, statistic)

    def metric_throttles(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the requests refused for Lambda's concurrency. Parameters as for `metric_requests`."""
        return self._of_function("Throttles", period, statistic)

    def metric_reads_failed(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the requests answered with 503, for the table refused. Parameters as for `metric_requests`."""
        return counters_metric("ReadsFailed", self._service_name, period, statistic)


def _metric(
    namespace: str, name: str, dimensions: dict[str, str], period: Duration | None, statistic: str
) -> cloudwatch.Metric:
    period = Duration.minutes(5) if period is None else period
    require_duration("period", period, Duration.seconds(1), Duration.days(1))
    require_instance("statistic", statistic, str, "a CloudWatch statistic such as 'Sum', 'Maximum' or 'p99'")
    return cloudwatch.Metric(
        namespace=namespace, metric_name=name, dimensions_map=dimensions, period=period, statistic=statistic
    )
