"""CloudWatch metrics: those of the runtime, and of what the constructs are made of."""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

NAMESPACE: Final = "DynamoDBCounters"
"""CloudWatch namespace of the runtime's own metrics."""


class RuntimeMetrics:
    """Metrics that a construct's functions emit."""

    _function: lambda_.Function
    _service_name: str

    @property
    def function(self) -> lambda_.Function:
        """The function that does the construct's work."""
        return self._function

    def metric(self, metric_name: str, **props: Any) -> cloudwatch.Metric:
        """Return a metric that the functions emit, by its name in the `table of metrics <../monitoring.md>`_.

        Parameters
        ----------
        metric_name : str
            Such as ``"LateEvents"``.
        **props
            Those of CDK's ``Metric``, such as ``period`` and ``statistic``. Default: sums of 5 minutes.
        """
        dimensions = {"service": self._service_name}
        return _metric(NAMESPACE, metric_name, dimensions, **props)


class AggregatorMetrics(RuntimeMetrics):
    """Metrics of a `StreamAggregator`."""

    _mapping: lambda_.EventSourceMapping
    _source_mapping: lambda_.EventSourceMapping | None
    _verifier: lambda_.Function | None

    @property
    def event_source_mapping(self) -> lambda_.EventSourceMapping:
        """The mapping that invokes the function with the records of the table's stream."""
        return self._mapping

    @property
    def source_event_source_mapping(self) -> lambda_.EventSourceMapping | None:
        """The mapping that invokes the function with the records of the source table's stream; None without one."""
        return self._source_mapping

    @property
    def verifier(self) -> lambda_.Function | None:
        """The function that compares counts with their source items; None without ``verify_every``."""
        return self._verifier

    def metric_iterator_age(self, **props: Any) -> cloudwatch.Metric:
        """How far counting lags behind the events, in milliseconds; at 23 hours Lambda gives up on records."""
        return of_function(self._function, "IteratorAge", **{"statistic": "Maximum", **props})

    def metric_records(self, **props: Any) -> cloudwatch.Metric:
        """Count stream records read."""
        return self.metric("Records", **props)

    def metric_uncounted(self, **props: Any) -> cloudwatch.Metric:
        """Count entries in quarantine, or objects in the on-failure bucket, that wait for repair."""
        return self.metric("Uncounted", **{"statistic": "Maximum", **props})


class IngestMetrics(RuntimeMetrics):
    """Metrics of an `EventIngest`."""

    _http_api: apigateway.HttpApi
    _queue: sqs.Queue
    _dead_letter_queue: sqs.Queue
    _receiver: lambda_.Function | None

    @property
    def http_api(self) -> apigateway.HttpApi:
        """The API that events are posted to."""
        return self._http_api

    @property
    def queue(self) -> sqs.Queue:
        """The queue of events to accept."""
        return self._queue

    @property
    def dead_letter_queue(self) -> sqs.Queue:
        """The queue of messages that could not be accepted."""
        return self._dead_letter_queue

    @property
    def receiver(self) -> lambda_.Function | None:
        """The function that validates requests; None in direct mode."""
        return self._receiver

    def metric_accepted(self, **props: Any) -> cloudwatch.Metric:
        """Count events accepted."""
        return self.metric("EventsAccepted", **props)

    def metric_dead_letters(self, **props: Any) -> cloudwatch.Metric:
        """Count messages in the dead-letter queue."""
        return of_queue(self._dead_letter_queue, "ApproximateNumberOfMessagesVisible", **props)


def of_function(function: lambda_.IFunction, name: str, **props: Any) -> cloudwatch.Metric:
    return _metric("AWS/Lambda", name, {"FunctionName": function.function_name}, **props)


def of_mapping(mapping: lambda_.EventSourceMapping, name: str, **props: Any) -> cloudwatch.Metric:
    return _metric("AWS/Lambda", name, {"EventSourceMappingUUID": mapping.event_source_mapping_id}, **props)


def of_queue(queue: sqs.Queue, name: str, **props: Any) -> cloudwatch.Metric:
    return _metric("AWS/SQS", name, {"QueueName": queue.queue_name}, **{"statistic": "Maximum", **props})


def of_api(http_api: apigateway.IHttpApi, name: str, **props: Any) -> cloudwatch.Metric:
    return _metric("AWS/ApiGateway", name, {"ApiId": http_api.api_id}, **props)


def _metric(namespace: str, name: str, dimensions: dict[str, str], **props: Any) -> cloudwatch.Metric:
    defaults = {"period": Duration.minutes(5), "statistic": "Sum"}
    return cloudwatch.Metric(namespace=namespace, metric_name=name, dimensions_map=dimensions, **{**defaults, **props})
