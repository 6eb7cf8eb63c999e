"""Events over HTTP."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from aws_cdk import Duration, RemovalPolicy, Token
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk_dynamodb_counters import _http
from cdk_dynamodb_counters._arguments import (
    MAX_WINDOW,
    require_choice,
    require_gathering,
    require_instance,
    require_integer,
    require_route,
)
from cdk_dynamodb_counters._functions import Observed, timeout_of
from cdk_dynamodb_counters._synth import late_text
from cdk_dynamodb_counters._tables import TableDeclarations, require_same_place
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable, accepting, grant
from counters_lambda.http_api.json_schema import require_enforced
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import encode, shortened
from dynamodb_counters.errors import InvalidArgumentError

_MAX_BODY_BYTES: Final = 5_000_000
"""Lambda takes 6 MB, in which the body is a JSON text, whose quotes are escaped.
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
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


class EventIngest(Observed):
    """Takes events by HTTP POST, responds 202, and accepts each event once from a queue.

    Parameters
    ----------
    scope, construct_id
        Parent construct, and id within it.
    table : DedupCounterTable
        The table.
    event : Event
        The event that clients post: one JSON object, or an array of up to 500; or CloudEvents.
    authorizer : IHttpRouteAuthorizer, optional
        Who may post; ``HttpNoneAuthorizer()`` makes the endpoint public. Default: IAM.
    mode : {"validated", "direct"}, optional
        In validated mode a function checks events first and responds 400 with reasons; in direct mode the API passes
        requests to the queue unchecked. Default: ``"validated"``.
    schema : dict, optional
        JSON Schema (draft 7) of an event; validated mode only. A keyword that would not be enforced is refused.
        Default: only what the key, the table and the event's `attributes` need is checked.
    tenant : mapping of str to str, optional
        Attributes, of the event's key, that must equal a claim of the caller, such as ``{"customer": "claims.sub"}``;
        validated mode only. Another value, or none, gets a 403. Claims are ``claims.NAME`` of a JWT, ``lambda.NAME`` of
        a Lambda authorizer's context, ``iam.NAME`` of IAM. Default: callers may post any event.
    http_api : HttpApi, optional
        An API to add the route to; it keeps its own throttling, CORS and access log. Default: an API is created.
    path : str, optional
        The route's path. Default: ``"/events"``.
    allow_origins : sequence of str, optional
        Web origins whose scripts may post (CORS). Default: none.
    throttle_rate, throttle_burst : int, optional
        Requests per second, sustained (1 to 10,000) and burst (1 to 5,000), above which the API responds 429. Default:
        1,000 and 2,000.
    access_log : bool, optional
        Whether the API that is created logs each request: when, from where, its path and status, neither body nor query
        string. Logs are kept for a month. Default: False.
    max_body_bytes : int, optional
        Maximum request body in validated mode, 1 to 5,000,000 bytes. Default: 1,000,000.
    batch_size : int, optional
        Maximum messages per invocation, 1 to 10,000. Default: 100; 1,000 for a packed event, which costs less the more
        events arrive together.
    max_batching_window : Duration, optional
        How long messages may wait for a fuller batch, up to 5 minutes, and at least 1 second for a batch above 10.
        Default: 1 second; 5 seconds for a packed event.
    max_concurrency : int, optional
        Maximum consumers at a time, 2 to 1,000. Default: no limit; 2 for a packed event, whose writers contend for the
        same chunks.
    function_options : aws_lambda.FunctionOptions, optional
        How the functions run. The timeout is the consumer's, and no token: the queue's visibility timeout is six times
        it plus `max_batching_window`, and 260 seconds at least. Concurrency to reserve: at least `max_concurrency`.
        Default: 512 MiB and 1 minute; see `CounterApi` for what else differs from Lambda's defaults.
    service_name : str, optional
        Name in logs, and the ``service`` dimension of metrics. Default: the stack's name and the path in it.
    alarm_actions : sequence of IAlarmAction, optional
        Actions of alarms. Default: none.

    Examples
    --------
    >>> EventIngest(stack, "Ingest", table=counters, event=VIEW)  # doctest: +SKIP
    """

    event_source_mapping: lambda_.EventSourceMapping
    """The mapping that invokes the function with the queue's messages."""
    http_api: apigateway.HttpApi
    """The API that events are posted to."""
    queue: sqs.Queue
    """The queue of events to accept."""
    dead_letter_queue: sqs.Queue
    """The queue of messages that could not be accepted."""
    receiver: lambda_.Function | None
    """The function that validates requests; None in direct mode."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        table: DedupCounterTable,
        event: Event,
        authorizer: apigateway.IHttpRouteAuthorizer | None = None,
        mode: Literal["validated", "direct"] = "validated",
        schema: dict[str, Any] | None = None,
        tenant: Mapping[str, str] | None = None,
        http_api: apigateway.HttpApi | None = None,
        path: str = "/events",
        allow_origins: Sequence[str] = (),
        throttle_rate: int | None = None,
        throttle_burst: int | None = None,
        access_log: bool = False,
        max_body_bytes: int = 1_000_000,
        batch_size: int | None = None,
        max_batching_window: Duration | None = None,
        max_concurrency: int | None = None,
        function_options: lambda_.FunctionOptions | None = None,
        service_name: str | None = None,
        alarm_actions: Sequence[cloudwatch.IAlarmAction] = (),
    ) -> None:
        timeout = timeout_of(function_options, Duration.minutes(1), 5, 900)
        require_instance("table", table, DedupCounterTable)
        require_instance("event", event, Event)
        # Few writers with large batches fill chunks, and seldom race for the next one.
        packed = event.packed is not None
        batch_size = (1000 if packed else 100) if batch_size is None else batch_size
        window = Duration.seconds(5 if packed else 1) if max_batching_window is None else max_batching_window
        max_concurrency = 2 if packed and max_concurrency is None else max_concurrency
        require_integer("batch_size", batch_size, 1, 10_000)
        require_gathering(batch_size, window)
        _require_concurrency(max_concurrency, function_options)
        authorizer = _http.authorizer_of(authorizer)
        require_choice("mode", mode, ("validated", "direct"))
        _require_schema(schema, mode)
        bound = _http.require_posted(tenant, mode, authorizer, event)
        own = {"allow_origins": allow_origins, "throttle_rate": throttle_rate, "throttle_burst": throttle_burst}
        _require_api(http_api, **own, access_log=access_log)
        require_route("path", path)
        _http.require_settings(allow_origins, throttle_rate, throttle_burst, access_log=access_log)
        require_integer("max_body_bytes", max_body_bytes, 1, _MAX_BODY_BYTES)
        if timeout.is_unresolved():
            # The visibility timeout is a multiple of this, and templates cannot multiply.
            raise InvalidArgumentError("timeout", "a token", "a Duration known at synth")
        super().__init__(scope, construct_id, service_name, function_options, alarm_actions)
        require_same_place("table", self, table.table)
        self._event = event
        declared = TableDeclarations.of(table.table)
        declared.add(events=[event])
        declared.warn_if_uncounted(self, lambda: [] if declared.counting(event) else [event.name], "this ingest takes")
        # The event's aggregates may be declared later: both functions refuse what those could not count.
        aggregates = late_text(lambda: encode(declared.counting(event)) if declared.counting(event) else None)
        self.queue, self.dead_letter_queue = self._build_queues(timeout, window)
        self.function = self._build_consumer(table, aggregates, timeout)
        self.event_source_mapping = lambda_.EventSourceMapping(
            self,
            "EventSourceMapping",
            target=self.function,
            event_source_arn=self.queue.queue_arn,
            batch_size=batch_size,
            max_batching_window=window,
            max_concurrency=max_concurrency,
            report_batch_item_failures=True,
        )
        # CDK's grant_consume_messages would grant more than Lambda needs.
        # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-lambda-function-trigger.html
        self.queue.grant(self.function, "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
        self.http_api = http_api or _http.build_api(
            self,
            description="Takes events to count",
            allow_origins=allow_origins,
            allow_methods=[apigateway.CorsHttpMethod.POST],
            throttle_rate=throttle_rate,
            throttle_burst=throttle_burst,
            access_log=access_log,
        )
        environment = {"MAX_BODY_BYTES": str(max_body_bytes), **_http.tenant_environment(bound)}
        if schema is not None:
            environment["SCHEMA"] = shortened(schema)
        self.receiver = self._build_receiver(aggregates, environment) if mode == "validated" else None
        self._build_route(path, authorizer)
        self._add_alarms()

    def metric_dead_letters(self, **props: Any) -> cloudwatch.Metric:
        """Count messages in the dead-letter queue."""
        return self.dead_letter_queue.metric_approximate_number_of_messages_visible(**props)

    def _build_queues(self, timeout: Duration, max_batching_window: Duration) -> tuple[sqs.Queue, sqs.Queue]:
        """Build the queue and its dead-letter queue, retained because nothing else stores what they hold.

        So is an alarm of each: a construct that is renamed or moved leaves both queues without a consumer.

        Messages are kept as long as their event is, after which they could not be accepted any more; but never so short
        that they expire before they were received often enough to become dead letters.
        """
        # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
        window = MAX_WINDOW if max_batching_window.is_unresolved() else max_batching_window
        hidden = int(timeout.to_seconds()) * 6 + int(window.to_seconds())
        event = math.inf if self._event.retention is None else int(self._event.retention.total_seconds())
        retention = max(min(_QUEUE_RETENTION, event), math.ceil(_FEWEST_RECEIVES * hidden / _PATIENCE))
        patience = _PATIENCE * retention
        hidden = max(hidden, math.ceil(patience / _MOST_RECEIVES))
        dead_letter_queue = sqs.Queue(
            self,
            "DeadLetterQueue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            # A message that SQS moves keeps its age: a day remains to inspect it.
            retention_period=Duration.seconds(max(min(_DEAD_LETTER_RETENTION, event), retention + _DAY)),
            removal_policy=RemovalPolicy.RETAIN,
        )
        queue = sqs.Queue(
            self,
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

    def _build_consumer(self, table: DedupCounterTable, aggregates: str, timeout: Duration) -> lambda_.Function:
        """Build the function that accepts the queue's events."""
        event = self._event
        role = self._build_role("Role", "Accepts a queue's events into a table")
        grant(table.table, role, *accepting(event))
        self.dead_letter_queue.grant(role, "sqs:SendMessage")
        environment = {
            "TABLE_NAME": table.table_name,
            "DECLARATIONS": encode((event,), attributes=True),
            "AGGREGATES": aggregates,
            "DEAD_LETTER_QUEUE_URL": self.dead_letter_queue.queue_url,
            # Requests of a function that has less time give up earlier.
            "TIMEOUT": str(int(timeout.to_seconds())),
        }
        return self._build_function(
            "Function",
            description="Accepts a queue's events",
            handler="ingest_queue",
            environment=environment,
            role=role,
            timeout=timeout,
        )

    def _build_receiver(self, aggregates: str, environment: Mapping[str, str]) -> lambda_.Function:
        """Build the function that validates events before it sends them to the queue."""
        role = self._build_role("ReceiverRole", "Sends events to a queue")
        self.queue.grant(role, "sqs:SendMessage")
        declared = {"DECLARATIONS": encode((self._event,), attributes=True), "AGGREGATES": aggregates}
        return self._build_function(
            "Receiver",
            description="Validates events and sends them to a queue",
            handler="ingest_http",
            environment={**declared, "QUEUE_URL": self.queue.queue_url, **environment},
            role=role,
            timeout=Duration.seconds(10),
        )

    def _build_route(self, path: str, authorizer: apigateway.IHttpRouteAuthorizer) -> None:
        """Build the route that takes events: to the receiver, or straight to the queue if there is none."""
        _http.require_new_route(self.http_api, path)
        receiver = self.receiver
        route = apigateway.HttpRoute(
            self,
            "Route",
            http_api=self.http_api,
            route_key=apigateway.HttpRouteKey.with_(path, apigateway.HttpMethod.POST),
            integration=(
                _direct_integration(self.queue)
                if receiver is None
                else integrations.HttpLambdaIntegration("Validated", receiver)
            ),
            authorizer=authorizer,
        )
        if receiver is None:
            _respond_202(route)
        _http.warn_if_public(self, authorizer, "anybody can post events, which are counted and cost you money.")

    def _add_alarms(self) -> None:
        """Add the alarms for events that were taken but not accepted."""
        self._add_alarm(
            "DeadLettersAlarm",
            self.metric_dead_letters(),
            "Events can never be accepted, or crash the consumer. Inspect the dead letters.",
            retained=True,
        )
        self._add_alarm(
            "WaitingAlarm",
            self.queue.metric_approximate_age_of_oldest_message(),
            "An event has waited 15 minutes to be accepted.",
            threshold=900,
            retained=True,
        )
        self._add_alarm(
            "RetryingAlarm",
            # SQS leaves what came back three times out of the age of its oldest message.
            # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
            self.metric("OldestUnfinished", period=Duration.minutes(15), statistic="Maximum"),
            "An event has waited 15 minutes, and could not be accepted again.",
            threshold=900,
        )


def _require_concurrency(max_concurrency: int | None, options: lambda_.FunctionOptions | None) -> None:
    if max_concurrency is None:
        return
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-lambda-eventsourcemapping-scalingconfig.html
    require_integer("max_concurrency", max_concurrency, 2, 1000)
    # A reservation that the consumers would exceed throttles them.
    # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
    reserved = None if options is None else options.reserved_concurrent_executions
    if reserved is not None and not Token.is_unresolved(reserved) and max_concurrency > reserved:
        allowed = f"at least max_concurrency, which is {max_concurrency}"
        raise InvalidArgumentError("reserved_concurrent_executions", reserved, allowed)


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


def _respond_202(route: apigateway.HttpRoute) -> None:
    # The queue responds with 200. CloudFormation takes the mapping only as lists, unlike API Gateway's own maps.
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-parameter-mapping.html
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-apigatewayv2-integration-responseparametermap.html
    for resource in route.node.find_all():
        if isinstance(resource, apigateway.CfnIntegration):
            resource.response_parameters = {
                "200": {"ResponseParameters": [{"Destination": "overwrite:statuscode", "Source": "202"}]}
            }


def _require_schema(schema: dict[str, Any] | None, mode: str) -> None:
    if schema is not None and mode == "direct":
        raise InvalidArgumentError("schema", schema, "None in direct mode, which checks nothing")
    if schema is not None:
        require_instance("schema", schema, dict, "a JSON Schema as a dict")
        require_enforced(schema)


def _require_api(http_api: object, **own: object) -> None:
    if http_api is None:
        return
    require_instance("http_api", http_api, apigateway.HttpApi, "an HttpApi, such as a CounterApi's http_api")
    for name, value in own.items():
        if value:
            raise InvalidArgumentError(name, value, "no value when http_api is given: that API has its own")
