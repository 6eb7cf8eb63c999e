"""Events over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cdk_dynamodb_counters._arguments import (
    require_choice,
    require_instance,
    require_integer,
    require_origins,
    require_route,
)
from cdk_dynamodb_counters._batching import batching_of, require_enough
from cdk_dynamodb_counters._functions import Observed, timeout_of
from cdk_dynamodb_counters._http import build_api, require_authorizer
from cdk_dynamodb_counters._ingest_parts import (
    alarm_specs,
    build_consumer,
    build_mapping,
    build_queues,
    build_receiver,
    build_route,
    graphs,
)
from cdk_dynamodb_counters._metrics import IngestMetrics
from cdk_dynamodb_counters._monitoring import build_alarms, build_dashboard
from cdk_dynamodb_counters._registry import Registry
from cdk_dynamodb_counters._synth import late_text
from cdk_dynamodb_counters._tenancy import require_posted
from cdk_dynamodb_counters._validations import warn_if_uncounted
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._http.json_schema import require_enforced
from dynamodb_counters.errors import InvalidArgumentError

_RATE: Final = 1000
_BURST: Final = 2000
_MAX_BODY_BYTES: Final = 5_000_000
"""Lambda takes 6 MB, in which the body is a JSON text, whose quotes are escaped.
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""


class EventIngest(Observed, IngestMetrics):
    """Takes events by HTTP POST, responds 202, and accepts each event once from a queue.

    Parameters
    ----------
    scope, construct_id
        Parent construct, and id within it.
    table : DedupCounterTable
        The table.
    event : Event
        The event that clients post: one JSON object, or an array of up to 500; or CloudEvents.
    authorizer : IHttpRouteAuthorizer
        Who may post. No default; ``HttpNoneAuthorizer()`` makes the endpoint public.
    mode : {"validated", "direct"}, optional
        In validated mode a function checks events first and responds 400 with reasons; in direct mode the API passes
        requests to the queue unchecked. Default: ``"validated"``.
    schema : mapping, optional
        JSON Schema (draft 7) of an event; validated mode only. A keyword that would not be enforced is refused.
        Default: only what the key, the table and the
        event's `attributes` need is checked.
    tenant : mapping of str to str, optional
        Attributes, of the event's key, that must equal a claim of the caller, such as ``{"customer": "claims.sub"}``;
        validated mode only. Another value, or none, gets a 403. Claims are ``claims.NAME`` of a JWT, ``lambda.NAME`` of
        a Lambda authorizer's context, ``iam.NAME`` of IAM. Default: callers may post any event.
    http_api : HttpApi, optional
        An API to add the route to; it keeps its own throttling and CORS. Default: an API is created.
    path : str, optional
        The route's path. Default: ``"/events"``.
    allow_origins : sequence of str, optional
        Web origins whose scripts may post (CORS). Default: none.
    throttle_rate, throttle_burst : int, optional
        Requests per second, sustained (1 to 10,000) and burst (1 to 5,000), above which the API responds 429. Default:
        1,000 and 2,000.
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
    dashboard : bool, optional
        Whether to create a dashboard. Default: no.
    alarm_actions : sequence of IAlarmAction, optional
        Actions of alarms. Default: none.

    Raises
    ------
    InvalidArgumentError
        If an argument is invalid, or contradicts another declaration of the table.

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
        tenant: Mapping[str, str] | None = None,
        http_api: apigateway.HttpApi | None = None,
        path: str = "/events",
        allow_origins: Sequence[str] = (),
        throttle_rate: int | None = None,
        throttle_burst: int | None = None,
        max_body_bytes: int = 1_000_000,
        batch_size: int | None = None,
        max_batching_window: Duration | None = None,
        max_concurrency: int | None = None,
        function_options: lambda_.FunctionOptions | None = None,
        service_name: str | None = None,
        dashboard: bool = False,
        alarm_actions: Sequence[cloudwatch.IAlarmAction] = (),
    ) -> None:
        timeout = timeout_of(function_options, Duration.minutes(1), 5, 900)

        require_instance("table", table, DedupCounterTable, "a DedupCounterTable")
        require_instance("event", event, Event, "an Event")
        batching = batching_of(event, batch_size, max_batching_window, max_concurrency)
        require_authorizer(authorizer)
        require_choice("mode", mode, ("validated", "direct"))
        _require_schema(schema, mode)
        bound = require_posted(tenant, mode, authorizer, event)
        _require_api(http_api, allow_origins=allow_origins, throttle_rate=throttle_rate, throttle_burst=throttle_burst)
        require_route("path", path)
        require_origins("allow_origins", allow_origins)
        require_integer("throttle_rate", _RATE if throttle_rate is None else throttle_rate, 1, 10_000)
        require_integer("throttle_burst", _BURST if throttle_burst is None else throttle_burst, 1, 5_000)
        require_integer("max_body_bytes", max_body_bytes, 1, _MAX_BODY_BYTES)
        if timeout.is_unresolved():
            # The visibility timeout is a multiple of this, and templates cannot multiply.
            raise InvalidArgumentError("timeout", "a token", "a Duration known at synth")
        require_enough(function_options, batching)
        super().__init__(scope, construct_id, service_name, function_options, alarm_actions)
        registration = Registry.of(table).used(self, table.table)
        registration.add_events(event)
        warn_if_uncounted(
            self,
            table.table,
            lambda: [] if registration.counting(event) else [event.name],
            "this ingest takes",
        )
        # The event's aggregates may be declared later: both functions refuse what those could not count.
        aggregates = late_text(lambda: encode(registration.counting(event)) if registration.counting(event) else None)
        self._queue, self._dead_letter_queue = build_queues(
            self, event, timeout=timeout, max_batching_window=batching.window
        )
        self._function = build_consumer(
            self,
            table.table,
            event,
            aggregates,
            dead_letter_queue=self._dead_letter_queue,
            timeout=timeout,
        )
        self._mapping = build_mapping(
            self,
            self._queue,
            batch_size=batching.size,
            max_batching_window=batching.window,
            max_concurrency=batching.concurrency,
        )
        self._http_api = http_api or build_api(
            self,
            description="Takes events to count",
            allow_origins=allow_origins,
            allow_methods=[apigateway.CorsHttpMethod.POST],
            throttle_rate=throttle_rate or _RATE,
            throttle_burst=throttle_burst or _BURST,
        )
        self._receiver: lambda_.Function | None = None
        if mode == "validated":
            self._receiver = build_receiver(
                self,
                self._queue,
                event,
                aggregates,
                schema=schema,
                tenant=bound,
                max_body_bytes=max_body_bytes,
            )
        build_route(self, self._http_api, path, authorizer, queue=self._queue, receiver=self._receiver)
        self._alarms = build_alarms(self, alarm_specs(self), alarm_actions)
        self._dashboard = build_dashboard(self, graphs(self), self._alarms) if dashboard else None

    @property
    def event_source_mapping(self) -> lambda_.EventSourceMapping:
        """The mapping that invokes the function with the queue's messages."""
        return self._mapping


def _require_schema(schema: Mapping[str, Any] | None, mode: str) -> None:
    if schema is None:
        return
    if mode == "direct":
        raise InvalidArgumentError("schema", schema, "None in direct mode, which checks nothing")
    if not isinstance(schema, Mapping):
        raise InvalidArgumentError("schema", schema, "a JSON Schema as a mapping")
    require_enforced(schema)


def _require_api(http_api: object, **own: object) -> None:
    if http_api is None:
        return
    require_instance("http_api", http_api, apigateway.HttpApi, "an HttpApi, such as a CounterApi's http_api")
    for name, value in own.items():
        if value:
            raise InvalidArgumentError(name, value, "no value when http_api is given: that API has its own")
