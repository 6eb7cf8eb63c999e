"""The parts of an `EventIngest`, each built by one function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from cdk_dynamodb_counters._aggregator_parts import SINGLE_SHARD_CONTEXT
from cdk_dynamodb_counters._monitoring import Watch

if TYPE_CHECKING:
    from cdk_dynamodb_counters.event_ingest import EventIngest


def build_queues(scope: EventIngest, *, timeout: Duration, most_receives: int) -> tuple[sqs.Queue, sqs.Queue]:
    """Build the queue, and the one for what cannot be accepted."""
    dead = sqs.Queue(
        scope,
        "DeadLetterQueue",
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(14),
    )
    queue = sqs.Queue(
        scope,
        "Queue",
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(4),
        # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
        visibility_timeout=Duration.seconds(int(timeout.to_seconds()) * 6),
        dead_letter_queue=sqs.DeadLetterQueue(queue=dead, max_receive_count=most_receives),
    )
    return queue, dead


def build_mapping(
    scope: EventIngest, function: lambda_.Function, queue: sqs.Queue, *, batch_size: int, max_batching_window: Duration
) -> lambda_.EventSourceMapping:
    """Build what connects the consumer to the queue."""
    mapping = lambda_.EventSourceMapping(
        scope,
        "EventSourceMapping",
        target=function,
        event_source_arn=queue.queue_arn,
        batch_size=batch_size,
        max_batching_window=max_batching_window,
        report_batch_item_failures=True,
    )
    queue.grant_consume_messages(function)
    return mapping


def direct_integration(queue: sqs.Queue) -> apigateway.HttpRouteIntegration:
    """Give the integration that hands a request's body to the queue, with no function in between."""
    return integrations.HttpSqsIntegration(
        "Direct",
        queue=queue,
        subtype=apigateway.HttpIntegrationSubtype.SQS_SEND_MESSAGE,
        parameter_mapping=apigateway.ParameterMapping()
        .custom("QueueUrl", queue.queue_url)
        .custom("MessageBody", "$request.body"),
    )


def answer_202(route: apigateway.HttpRoute) -> None:
    """Make the answer of the queue an answer of the API: 202, not 200."""
    for resource in route.node.find_all():
        if isinstance(resource, apigateway.CfnIntegration):
            resource.add_property_override(
                "ResponseParameters",
                {"200": {"ResponseParameters": [{"Destination": "overwrite:statuscode", "Source": "202"}]}},
            )


def emulated(scope: EventIngest) -> bool:
    """Tell whether the deployment is for an emulator, as the aggregator's context flag says."""
    return str(scope.node.try_get_context(SINGLE_SHARD_CONTEXT)).lower() == "true"


def watches(scope: EventIngest) -> tuple[Watch, ...]:
    """Give the alarms."""
    return (
        Watch("DeadLettersAlarm", scope.metric_dead_letters(), 1, "Messages that cannot be accepted; look into them."),
        Watch("WaitingAlarm", scope.metric_waiting_age(), 900, "Events wait a quarter of an hour to be accepted."),
        Watch("ErrorsAlarm", scope.metric_errors(), 1, "Batches fail and are delivered again; events wait.", 3),
        Watch("ThrottlesAlarm", scope.metric_throttles(), 1, "Lambda's concurrency keeps events waiting.", 3),
        Watch("RejectedAlarm", scope.metric_rejected(), 1, "Events came through that can never be accepted."),
        Watch("ServerErrorsAlarm", scope.metric_server_errors(), 1, "Clients were told that events were not taken."),
    )


def graphs(scope: EventIngest) -> dict[str, list[cloudwatch.Metric]]:
    """Give what the dashboard shows."""
    return {
        "Requests": [scope.metric_requests(), scope.metric_client_errors(), scope.metric_server_errors()],
        "Latency (ms)": [scope.metric_latency(), scope.metric_latency(statistic="p50")],
        "Events": [scope.metric_accepted(), scope.metric_duplicates(), scope.metric_rejected()],
        "Waiting (s)": [scope.metric_waiting_age()],
        "Dead letters": [scope.metric_dead_letters()],
        "Function": [scope.metric_errors(), scope.metric_throttles()],
    }
