"""Events over HTTP: taken at once, accepted a moment later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk_dynamodb_counters._arguments import (
    require_choice,
    require_duration,
    require_instance,
    require_integer,
    require_memory_size,
    require_observability,
    require_origins,
    require_place,
    require_route,
)
from cdk_dynamodb_counters._http import build_api, require_authorizer
from cdk_dynamodb_counters._ingest_parts import (
    build_consumer,
    build_mapping,
    build_queues,
    build_receiver,
    build_route,
    graphs,
    watches,
)
from cdk_dynamodb_counters._metrics import IngestMetrics
from cdk_dynamodb_counters._monitoring import build_alarms, build_dashboard
from cdk_dynamodb_counters._observed import Observed
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
from dynamodb_counters._declarations import Event
from dynamodb_counters._http.json_schema import compile_schema
from dynamodb_counters.errors import InvalidArgumentError

_RATE: Final = 1000
_BURST: Final = 2000


class EventIngest(Observed, IngestMetrics):
    """Takes events by HTTP POST, answers 202, and accepts each once through a queue.

    Parameters
    ----------
    scope : Construct
        Where it stands.
    construct_id : str
        Its name there.
    table : DedupCounterTable
        The table.
    event : Event
        What is posted: an object, or an array of up to 500.
    authorizer : IHttpRouteAuthorizer
        Who may post. There is no default; ``HttpNoneAuthorizer()`` says: anybody.
    mode : {"validated", "direct"}, optional
        Whether a function checks the events before they are taken, and answers 400 with reasons, or the API hands
        requests to the queue as they are. Default ``"validated"``.
    schema : mapping, optional
        JSON Schema of an event's attributes, up to draft 7; validated mode only. Default: only the key is checked.
    http_api : HttpApi, optional
        An API to add the route to; it keeps its own throttling and CORS. Default: one is created.
    path : str, optional
        The route's path. Default ``"/events"``.
    allow_origins : sequence of str, optional
        Web origins whose scripts may post (CORS). Default: none.
    throttle_rate, throttle_burst : int, optional
        Requests a second, on average and at once, beyond which the API answers 429. Default: 1,000 and 2,000.
    max_body_bytes : int, optional
        Longest request in validated mode, 1 to 6,000,000. Default: 1,000,000.
    max_receives : int, optional
        How often a message is tried before it goes to the dead-letter queue, 1 to 1,000. Default: 3.
    batch_size : int, optional
        Most messages of one invocation, 1 to 10,000. Default: 100.
    max_batching_window : Duration, optional
        How long messages may wait for a fuller batch, up to 5 minutes. Default: 1 second.
    memory_size : int, optional
        Memory of the functions in MiB, 128 to 10,240. Default: 512.
    timeout : Duration, optional
        Longest invocation of the consumer, 5 seconds to 15 minutes, no token; messages are hidden six times as long.
        Default: 1 minute.
    service_name : str, optional
        Names it in logs and as the ``service`` dimension of its metrics. Default: the construct's path.
    log_retention : RetentionDays, optional
        How long logs are kept. Default: one month.
    monitoring : bool, optional
        Whether there is a dashboard, and alarms. Default: there is not.
    alarm_actions : sequence of IAlarmAction, optional
        What the alarms do. Default: nothing but change their state.

    Attributes
    ----------
    http_api : HttpApi
        Where events are posted.
    queue, dead_letter_queue : Queue
        Events on their way; messages that could not be accepted.
    function : Function
        The consumer of the queue.
    receiver : Function or None
        What checks requests, in validated mode.
    event_source_mapping : EventSourceMapping
        Connects the consumer to the queue.
    log_group : LogGroup
        Where functions and API log to.
    alarms : tuple of Alarm
        With monitoring.
    dashboard : Dashboard or None
        With monitoring.
    service_name : str
        As given, or the default.

    Raises
    ------
    InvalidArgumentError
        An argument is not allowed.

    Examples
    --------
    >>> EventIngest(stack, "Ingest", table=counters, event=VIEW, authorizer=HttpIamAuthorizer())  # doctest: +SKIP
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        table: DedupCounterTable,
        event: Event,
        authorizer: apigateway.IHttpRouteAuthorizer,
        mode: Literal["validated", "direct"] = "validated",
        schema: Mapping[str, Any] | None = None,
        http_api: apigateway.HttpApi | None = None,
        path: str = "/events",
        allow_origins: Sequence[str] = (),
        throttle_rate: int | None = None,
        throttle_burst: int | None = None,
        max_body_bytes: int = 1_000_000,
        max_receives: int = 3,
        batch_size: int = 100,
        max_batching_window: Duration | None = None,
        memory_size: int = 512,
        timeout: Duration | None = None,
        service_name: str | None = None,
        log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
        monitoring: bool = False,
        alarm_actions: Sequence[cloudwatch.IAlarmAction] = (),
    ) -> None:
        max_batching_window = Duration.seconds(1) if max_batching_window is None else max_batching_window
        timeout = Duration.minutes(1) if timeout is None else timeout

        require_place(scope, construct_id)
        require_instance("table", table, DedupCounterTable, "a DedupCounterTable")
        require_instance("event", event, Event, "an Event")
        require_authorizer(authorizer)
        require_choice("mode", mode, ("validated", "direct"))
        _require_schema(schema, mode)
        _require_api(http_api, allow_origins=allow_origins, throttle_rate=throttle_rate, throttle_burst=throttle_burst)
        require_route("path", path)
        require_origins("allow_origins", allow_origins)
        require_integer("throttle_rate", _RATE if throttle_rate is None else throttle_rate, 1, 10_000)
        require_integer("throttle_burst", _BURST if throttle_burst is None else throttle_burst, 1, 5_000)
        require_integer("max_body_bytes", max_body_bytes, 1, 6_000_000)
        require_integer("max_receives", max_receives, 1, 1000)
        require_integer("batch_size", batch_size, 1, 10_000)
        require_duration("max_batching_window", max_batching_window, Duration.seconds(0), Duration.minutes(5))
        require_memory_size(memory_size)
        require_duration("timeout", timeout, Duration.seconds(5), Duration.minutes(15))
        _require_known(timeout)
        require_observability(
            service_name=service_name,
            log_retention=log_retention,
            monitoring=monitoring,
            alarm_actions=alarm_actions,
        )

        super().__init__(scope, construct_id, service_name=service_name, log_retention=log_retention)
        self._queue, self._dead_letter_queue = build_queues(self, timeout=timeout, most_receives=max_receives)
        self._function = build_consumer(self, table, event, memory_size=memory_size, timeout=timeout)
        self._mapping = build_mapping(
            self, self._function, self._queue, batch_size=batch_size, max_batching_window=max_batching_window
        )
        self._http_api = http_api or build_api(
            self,
            self._log_group,
            description="Takes events to be counted",
            allow_origins=allow_origins,
            allow_methods=[apigateway.CorsHttpMethod.POST],
            throttle_rate=throttle_rate or _RATE,
            throttle_burst=throttle_burst or _BURST,
        )
        self._receiver = (
            build_receiver(self, event, schema=schema, max_body_bytes=max_body_bytes, memory_size=memory_size)
            if mode == "validated"
            else None
        )
        build_route(self, path, authorizer)
        self._alarms = build_alarms(self, watches(self), alarm_actions) if monitoring else ()
        self._dashboard = build_dashboard(self, graphs(self), self._alarms) if monitoring else None

    @property
    def http_api(self) -> apigateway.HttpApi:
        """Where events are posted."""
        return self._http_api

    @property
    def queue(self) -> sqs.Queue:
        """Events on their way."""
        return self._queue

    @property
    def dead_letter_queue(self) -> sqs.Queue:
        """Messages that could not be accepted."""
        return self._dead_letter_queue

    @property
    def function(self) -> lambda_.Function:
        """The consumer of the queue."""
        return self._function

    @property
    def receiver(self) -> lambda_.Function | None:
        """What checks requests, in validated mode."""
        return self._receiver

    @property
    def event_source_mapping(self) -> lambda_.EventSourceMapping:
        """What connects the consumer to the queue."""
        return self._mapping


def _require_schema(schema: Mapping[str, Any] | None, mode: str) -> None:
    if schema is None:
        return
    if mode == "direct":
        raise InvalidArgumentError("schema", schema, "None in direct mode, in which nothing is checked")
    if not isinstance(schema, Mapping):
        raise InvalidArgumentError("schema", schema, "a JSON Schema as a mapping")
    compile_schema(schema)


def _require_known(timeout: Duration) -> None:
    # The queue hides messages six times as long, and templates cannot multiply.
    if timeout.is_unresolved():
        raise InvalidArgumentError("timeout", "a token", "a Duration known at synthesis")


def _require_api(http_api: object, **own: object) -> None:
    if http_api is None:
        return
    require_instance("http_api", http_api, apigateway.HttpApi, "an HttpApi, such as that of a CounterApi")
    for name, value in own.items():
        if value:
            raise InvalidArgumentError(name, value, "left out when http_api is given: it has its own")
