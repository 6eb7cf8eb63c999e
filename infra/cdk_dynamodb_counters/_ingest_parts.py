"""The parts of an `EventIngest`, each built by one function."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, cast

from aws_cdk import CfnResource, Duration, RemovalPolicy
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk_dynamodb_counters._batching import MAX_WINDOW
from cdk_dynamodb_counters._functions import Observed, build_function, build_role, is_emulated
from cdk_dynamodb_counters._grants import accepting, grant
from cdk_dynamodb_counters._http import warn_if_public
from cdk_dynamodb_counters._metrics import IngestMetrics, of_api, of_function, of_queue
from cdk_dynamodb_counters._monitoring import AlarmSpec
from cdk_dynamodb_counters._synth import check_at_synth, resolved_property
from cdk_dynamodb_counters._tenancy import tenant_environment
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import encode, shortened
from dynamodb_counters.errors import InvalidArgumentError

_DAY: Final = 86_400
_QUEUE_RETENTION: Final = 4 * _DAY
_DEAD_LETTER_RETENTION: Final = 14 * _DAY
"""The longest there is."""

_PATIENCE: Final = 0.75
"""Share of its queue's retention for which a message is delivered again before it becomes a dead letter: nothing that
is refused for long may expire in the queue."""
_FEWEST_RECEIVES: Final = 5
_MOST_RECEIVES: Final = 1000
"""https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html"""

_MAX_MESSAGE_BYTES: Final = 262_144
"""In direct mode it bounds what one request costs the consumer; dead letters have four times as much, to grow."""


def build_queues(
    scope: Construct, event: Event, *, timeout: Duration, max_batching_window: Duration
) -> tuple[sqs.Queue, sqs.Queue]:
    """Build the queue and its dead-letter queue, retained because nothing else stores what they hold.

    So is an alarm of each: a construct that is renamed or moved leaves both queues without a consumer.

    Messages are kept as long as their event is, after which they could not be accepted any more; but never so short
    that they expire before they were received often enough to become dead letters.
    """
    # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    hidden = int(timeout.to_seconds()) * 6 + _longest(max_batching_window)
    retention = max(_at_most(_QUEUE_RETENTION, event), math.ceil(_FEWEST_RECEIVES * hidden / _PATIENCE))
    patience = _PATIENCE * retention
    hidden = max(hidden, math.ceil(patience / _MOST_RECEIVES))
    dead_letter_queue = sqs.Queue(
        scope,
        "DeadLetterQueue",
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        # A message that SQS moves keeps its age: a day remains to inspect it.
        retention_period=Duration.seconds(max(_at_most(_DEAD_LETTER_RETENTION, event), retention + _DAY)),
        removal_policy=RemovalPolicy.RETAIN,
    )
    queue = sqs.Queue(
        scope,
        "Queue",
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.seconds(retention),
        max_message_size_bytes=_MAX_MESSAGE_BYTES,
        removal_policy=RemovalPolicy.RETAIN,
        visibility_timeout=Duration.seconds(hidden),
        dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letter_queue, max_receive_count=int(patience / hidden)),
    )
    return queue, dead_letter_queue


def _at_most(longest: int, event: Event) -> int:
    """Return the event's retention in seconds, if it is not longer."""
    return longest if event.retention is None else min(longest, int(event.retention.total_seconds()))


def _longest(max_batching_window: Duration) -> int:
    """The window in seconds; the longest there is if it is known only at deployment."""
    return int((MAX_WINDOW if max_batching_window.is_unresolved() else max_batching_window).to_seconds())


def build_mapping(
    scope: Observed,
    queue: sqs.Queue,
    *,
    batch_size: int,
    max_batching_window: Duration,
    max_concurrency: int | None,
) -> lambda_.EventSourceMapping:
    mapping = lambda_.EventSourceMapping(
        scope,
        "EventSourceMapping",
        target=scope.function,
        event_source_arn=queue.queue_arn,
        batch_size=batch_size,
        max_batching_window=max_batching_window,
        max_concurrency=max_concurrency,
        report_batch_item_failures=True,
    )
    # CDK's grant_consume_messages would grant more than Lambda needs.
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-lambda-function-trigger.html
    queue.grant(scope.function, "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
    return mapping


def build_consumer(
    scope: Observed,
    table: dynamodb.ITable,
    event: Event,
    aggregates: str,
    *,
    dead_letter_queue: sqs.Queue,
    timeout: Duration,
) -> lambda_.Function:
    """Build the function that accepts the queue's events."""
    role = build_role(scope, "Role", "Accepts a queue's events into a table")
    # The plain event that a duplicate repeats is read: another payload of its key becomes a dead letter.
    grant(table, role, *(("GetItem",) if event.packed is None else ()), *accepting(event))
    dead_letter_queue.grant(role, "sqs:SendMessage")
    environment = {
        "TABLE_NAME": table.table_name,
        "DECLARATIONS": encode((event,), attributes=True),
        "AGGREGATES": aggregates,
        "DEAD_LETTER_QUEUE_URL": dead_letter_queue.queue_url,
        # Requests of a function that has less time give up earlier.
        "TIMEOUT": str(int(timeout.to_seconds())),
    }
    if is_emulated(scope):
        environment["BULK_BY_PUT"] = "true"
    return build_function(
        scope,
        "Function",
        description="Accepts a queue's events",
        handler="ingest_queue",
        environment=environment,
        role=role,
        memory_size=scope.function_options.memory_size or 512,
        timeout=timeout,
    )


def build_receiver(
    scope: Observed,
    queue: sqs.Queue,
    event: Event,
    aggregates: str,
    *,
    schema: Mapping[str, Any] | None,
    tenant: Mapping[str, str],
    max_body_bytes: int,
) -> lambda_.Function:
    """Build the function that validates events before it sends them to the queue."""
    role = build_role(scope, "ReceiverRole", "Sends events to a queue")
    queue.grant(role, "sqs:SendMessage")
    environment = {
        "DECLARATIONS": encode((event,), attributes=True),
        "AGGREGATES": aggregates,
        "QUEUE_URL": queue.queue_url,
        "MAX_BODY_BYTES": str(max_body_bytes),
        **tenant_environment(tenant),
    }
    if schema is not None:
        environment["SCHEMA"] = shortened(schema)
    return build_function(
        scope,
        "Receiver",
        description="Validates events and sends them to a queue",
        handler="ingest_http",
        environment=environment,
        role=role,
        memory_size=scope.function_options.memory_size or 512,
        timeout=Duration.seconds(10),
    )


def build_route(
    scope: Construct,
    http_api: apigateway.HttpApi,
    path: str,
    authorizer: apigateway.IHttpRouteAuthorizer,
    *,
    queue: sqs.Queue,
    receiver: lambda_.Function | None,
) -> None:
    """Build the route that takes events: to the receiver, or straight to the queue if there is none."""
    route = apigateway.HttpRoute(
        scope,
        "Route",
        http_api=http_api,
        route_key=apigateway.HttpRouteKey.with_(path, apigateway.HttpMethod.POST),
        integration=(
            _direct_integration(queue)
            if receiver is None
            else integrations.HttpLambdaIntegration("Validated", receiver)
        ),
        authorizer=authorizer,
    )
    if receiver is None:
        _respond_202(route)
    check_at_synth(scope, lambda: _repeated_route(route))
    warn_if_public(scope, authorizer, "anybody can post events, which are counted and cost you money.")


def alarm_specs(metrics: IngestMetrics) -> tuple[AlarmSpec, ...]:
    """Return the alarms for events that were taken but not accepted."""
    return (
        AlarmSpec(
            "DeadLettersAlarm",
            metrics.metric_dead_letters(),
            1,
            "Events can never be accepted, or crash the consumer. Inspect the dead letters.",
            retained=True,
        ),
        AlarmSpec(
            "WaitingAlarm",
            of_queue(metrics.queue, "ApproximateAgeOfOldestMessage"),
            900,
            "An event has waited 15 minutes to be accepted.",
            retained=True,
        ),
        AlarmSpec(
            "RetryingAlarm",
            # SQS leaves what came back three times out of the age of its oldest message.
            # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
            metrics.metric("OldestUnfinished", period=Duration.minutes(15), statistic="Maximum"),
            900,
            "An event has waited 15 minutes, and could not be accepted again.",
        ),
    )


def graphs(metrics: IngestMetrics) -> dict[str, list[cloudwatch.Metric]]:
    return {
        "Requests": [
            of_api(metrics.http_api, "Count"),
            of_api(metrics.http_api, "4xx"),
            of_api(metrics.http_api, "5xx"),
        ],
        "Latency (ms)": [
            of_api(metrics.http_api, "Latency", statistic="p99"),
            of_api(metrics.http_api, "Latency", statistic="p50"),
        ],
        "Events": [
            metrics.metric_accepted(),
            metrics.metric("EventsDuplicate"),
            metrics.metric("EventsConflicting"),
            metrics.metric("EventsRejected"),
            metrics.metric("EventsTooLate"),
            metrics.metric("EventsFailed"),
        ],
        "Waiting (s)": [
            of_queue(metrics.queue, "ApproximateAgeOfOldestMessage"),
            metrics.metric("OldestUnfinished", statistic="Maximum"),
        ],
        "Dead letters": [metrics.metric_dead_letters()],
        "Function": [of_function(metrics.function, "Errors"), of_function(metrics.function, "Throttles")],
    }


def _direct_integration(queue: sqs.Queue) -> apigateway.HttpRouteIntegration:
    return integrations.HttpSqsIntegration(
        "Direct",
        queue=queue,
        subtype=apigateway.HttpIntegrationSubtype.SQS_SEND_MESSAGE,
        parameter_mapping=apigateway.ParameterMapping()
        .custom("QueueUrl", queue.queue_url)
        .custom("MessageBody", "$request.body")
        # A redrive gives a message another time of sending; this one stays.
        # https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-aws-services-reference.html#SQS-SendMessage
        .custom("MessageAttributes", '{"taken":{"DataType":"Number","StringValue":"${context.requestTimeEpoch}"}}'),
    )


def _repeated_route(route: apigateway.HttpRoute) -> str | None:
    """Find another route of the same API with the same key: CloudFormation would fail to create the second one."""
    for other in route.node.root.node.find_all():
        if (
            isinstance(other, apigateway.HttpRoute)
            and other.node.addr != route.node.addr
            and other.http_api.node.addr == route.http_api.node.addr
            and _route_key(other) == _route_key(route)
        ):
            allowed = f"each route of an API only once, but {other.node.path!r} is the same; pass another path="
            return str(InvalidArgumentError("route", _route_key(route), allowed))
    return None


def _route_key(route: apigateway.HttpRoute) -> object:
    return resolved_property(cast(CfnResource, route.node.default_child), "routeKey")


def _respond_202(route: apigateway.HttpRoute) -> None:
    # The queue responds with 200. CloudFormation takes the mapping only as lists, unlike API Gateway's own maps.
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-parameter-mapping.html
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-apigatewayv2-integration-responseparametermap.html
    for resource in route.node.find_all():
        if isinstance(resource, apigateway.CfnIntegration):
            resource.response_parameters = {
                "200": {"ResponseParameters": [{"Destination": "overwrite:statuscode", "Source": "202"}]}
            }
