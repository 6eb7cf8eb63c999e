"""The parts of an `EventIngest`, each built by one function."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from cdk_dynamodb_counters._emulator import emulated
from cdk_dynamodb_counters._functions import build_function, build_role
from cdk_dynamodb_counters._http import warn_if_public
from cdk_dynamodb_counters._monitoring import Watch
from cdk_dynamodb_counters._nag import acknowledge_key
from cdk_dynamodb_counters.runtime_code import runtime_code
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import encode

if TYPE_CHECKING:
    from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
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


def build_consumer(
    scope: EventIngest, table: DedupCounterTable, event: Event, *, memory_size: int, timeout: Duration
) -> lambda_.Function:
    """Build the function that accepts the queue's events."""
    role = build_role(scope, "Role", scope.log_group, "Accepts events of a queue into a table")
    table.grant_accept(role)
    if table.table.encryption_key is not None:
        acknowledge_key(role)
    environment = {"TABLE_NAME": table.table_name, "DECLARATIONS": encode((event,))}
    if emulated(scope):
        environment["BULK_BY_PUT"] = "true"
    return build_function(
        scope,
        "Function",
        description="Accepts events of a queue",
        handler="ingest_queue",
        code=runtime_code(),
        environment=environment,
        service_name=scope.service_name,
        role=role,
        log_group=scope.log_group,
        memory_size=memory_size,
        timeout=timeout,
    )


def build_receiver(
    scope: EventIngest, event: Event, *, schema: Mapping[str, Any] | None, max_body_bytes: int, memory_size: int
) -> lambda_.Function:
    """Build the function that checks events before the queue takes them."""
    role = build_role(scope, "ReceiverRole", scope.log_group, "Puts events into a queue")
    scope.queue.grant(role, "sqs:SendMessage")
    environment = {
        "DECLARATIONS": encode((event,)),
        "QUEUE_URL": scope.queue.queue_url,
        "MAX_BODY_BYTES": str(max_body_bytes),
    }
    if schema is not None:
        environment["SCHEMA"] = json.dumps(schema, separators=(",", ":"))
    return build_function(
        scope,
        "Receiver",
        description="Checks events and puts them into a queue",
        handler="ingest_http",
        code=runtime_code(),
        environment=environment,
        service_name=scope.service_name,
        role=role,
        log_group=scope.log_group,
        memory_size=memory_size,
        timeout=Duration.seconds(10),
    )


def build_route(scope: EventIngest, path: str, authorizer: apigateway.IHttpRouteAuthorizer) -> None:
    """Build the route that takes events: to the receiver, or straight to the queue where there is none."""
    route = apigateway.HttpRoute(
        scope,
        "Route",
        http_api=scope.http_api,
        route_key=apigateway.HttpRouteKey.with_(path, apigateway.HttpMethod.POST),
        integration=(
            _direct_integration(scope.queue)
            if scope.receiver is None
            else integrations.HttpLambdaIntegration("Validated", scope.receiver)
        ),
        authorizer=authorizer,
    )
    if scope.receiver is None:
        _answer_202(route)
    warn_if_public(scope, authorizer, "anybody may post events, which are counted and cost you money.")


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


def _direct_integration(queue: sqs.Queue) -> apigateway.HttpRouteIntegration:
    return integrations.HttpSqsIntegration(
        "Direct",
        queue=queue,
        subtype=apigateway.HttpIntegrationSubtype.SQS_SEND_MESSAGE,
        parameter_mapping=apigateway.ParameterMapping()
        .custom("QueueUrl", queue.queue_url)
        .custom("MessageBody", "$request.body"),
    )


def _answer_202(route: apigateway.HttpRoute) -> None:
    # The queue answers 200. Which answers may be mapped, and how CloudFormation writes it: as lists, not as API
    # Gateway's own maps, which it refuses.
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-parameter-mapping.html
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-apigatewayv2-integration-responseparametermap.html
    for resource in route.node.find_all():
        if isinstance(resource, apigateway.CfnIntegration):
            resource.response_parameters = {
                "200": {"ResponseParameters": [{"Destination": "overwrite:statuscode", "Source": "202"}]}
            }
