"""Counts over HTTP, and a live page of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from aws_cdk import Duration, Tokenization
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cdk_dynamodb_counters import _http
from cdk_dynamodb_counters._arguments import require_duration, require_instance, require_list, require_route
from cdk_dynamodb_counters._functions import Observed, timeout_of
from cdk_dynamodb_counters._synth import acknowledge_resource
from cdk_dynamodb_counters._tables import TableDeclarations, require_same_place
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
from dynamodb_counters._declarations import (
    ActiveMembers,
    Aggregate,
    Count,
    Declarable,
    Declaration,
    Event,
    Sum,
    Threshold,
    Window,
    flatten,
)
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._declarations.composites import digit_of
from dynamodb_counters._reads.question import fields_of, parameters_of
from dynamodb_counters.errors import InvalidArgumentError

_GET: Final = apigateway.HttpMethod.GET
_ACTIVE: Final = timedelta(days=30)
_UNITS: Final = ((1440, "day", "d"), (60, "hour", "h"), (1, "minute", "m"))


@dataclass(frozen=True, kw_only=True)
class LivePage:
    """A page with a total, the top of a leaderboard, a window of one of its groups, and how many members were active.

    Parameters
    ----------
    title : str
        The page's heading.
    total : Aggregate
        An aggregate without fields; its first count or sum is the total.
    top : Aggregate
        A ranked aggregate whose leaderboard has no fields.
    window : Window
        A window whose fields are all fields of `top`.
    threshold : Threshold, optional
        One of the ranked measure of `top`: the leaderboard's bars have a line at each. Default: none.
    active : ActiveMembers, optional
        Members of one group of all, such as the unique visitors: the page shows how many were active in the last 30
        days, or the longest span if that is shorter. Default: none.
    beacon : mapping of str to str, optional
        The event that the page posts after 3 seconds: a template per attribute, in which ``{page}`` is the page's
        address, ``{time}`` the current time and ``{client}`` a random name that the browser keeps. Default: none.
    beacon_path : str, optional
        Where the beacon is posted: the path of an `EventIngest` on the same API. Default: ``"/events"``.

    Examples
    --------
    >>> LivePage(title="Blog", total=SITE, top=VIEWS, window=ROLLING)  # doctest: +SKIP
    """

    title: str
    total: Aggregate
    top: Aggregate
    window: Window
    threshold: Threshold | None = None
    active: ActiveMembers | None = None
    beacon: Mapping[str, str] | None = None
    beacon_path: str = "/events"

    def __post_init__(self) -> None:
        if not isinstance(self.title, str) or not self.title.strip():
            raise InvalidArgumentError("title", self.title, "a non-blank string")
        total, top = require_instance("total", self.total, Aggregate), require_instance("top", self.top, Aggregate)
        if total.fields or _first(total) is None:
            raise InvalidArgumentError("total", total.name, "an aggregate without fields, with a Count or Sum")
        if top.ranking is None or {*top.ranking._template.fields} & {*top.fields}:
            raise InvalidArgumentError("top", top.name, "a ranked aggregate whose leaderboard has no fields")
        if not {*require_instance("window", self.window, Window).fields} <= {*top.fields}:
            raise InvalidArgumentError("window", self.window.name, f"one whose fields are all fields of {top.name!r}")
        if (line := self.threshold) is not None:
            require_instance("threshold", line, Threshold)
            if (line.aggregate, line.measure) != (top, top.ranking.measure):
                raise InvalidArgumentError("threshold", line.name, f"one of {top.ranking.measure!r} of {top.name!r}")
        if self.active is not None and require_instance("active", self.active, ActiveMembers).fields:
            raise InvalidArgumentError("active", self.active.name, "one without fields")
        beacon = {} if self.beacon is None else self.beacon
        texts = [text for pair in beacon.items() for text in pair] if isinstance(beacon, Mapping) else [None]
        if not all(isinstance(text, str) for text in texts):
            allowed = "a mapping of str to str; optional placeholders: {page}, {time}, {client}"
            raise InvalidArgumentError("beacon", beacon, allowed)
        require_route("beacon_path", self.beacon_path)

    def _settings(self) -> str:
        """Return the page's configuration as JSON."""
        settings: dict[str, object] = {
            "title": self.title,
            "total": {"aggregate": self.total.name, "measure": _first(self.total)},
            "top": {"aggregate": self.top.name},
            "window": {"name": self.window.name, "fields": list(self.window.fields)},
        }
        if self.threshold is not None:
            levels = [float(level) for level in self.threshold.at]
            settings["top"] = {"aggregate": self.top.name, "threshold": {"name": self.threshold.name, "levels": levels}}
        if self.active is not None:
            span = min(_ACTIVE, self.active._longest)
            minutes = span // timedelta(minutes=1)
            unit, name, letter = next(row for row in _UNITS if minutes % row[0] == 0)
            last = minutes // unit
            settings["active"] = {"name": self.active.name, "last": f"{last}{letter}", "words": f"{last} {name}s"}
        if self.beacon is not None:
            settings["beacon"] = {"path": self.beacon_path.removeprefix("/"), "event": dict(self.beacon)}
        return json.dumps(settings, separators=(",", ":"))


class CounterApi(Observed):
    """Serves counts over HTTP: groups, batches, windows, series, leaderboards and all else declared; events if asked.

    Parameters
    ----------
    scope, construct_id
        Parent construct, and id within it.
    table : DedupCounterTable
        The table.
    shown : sequence of Aggregate, Window, Distinct, ActiveMembers, Percentiles, Extremes or Ranks
        Declarations that clients may read, defined as they are counted; nothing else is served.
    events : sequence of Event, optional
        Events that clients may list, one by one; each name only once in `shown` and `events`. Default: none.
    authorizer : IHttpRouteAuthorizer, optional
        Who may read. ``HttpNoneAuthorizer()`` makes the API public. Default: callers with IAM permission.
    tenant : mapping of str to str, optional
        Fields that are always a claim of the caller, such as ``{"customer": "claims.sub"}``: who leaves such a
        parameter out gets the own counts, and who asks for another value a 403. Everything in `shown` and `events`
        must have these fields. Claims are as in `EventIngest`. Default: callers may read everything.
    page : LivePage, optional
        A page at ``/`` that shows counts live; requires ``HttpNoneAuthorizer()``. Default: no page.
    cache_age : Duration, optional
        How long clients may cache a response, up to a day. Default: 5 seconds.
    allow_origins : sequence of str, optional
        Web origins whose scripts may read (CORS). Default: none.
    throttle_rate, throttle_burst : int, optional
        Requests per second, sustained (1 to 10,000) and burst (1 to 5,000), above which the API responds 429. Default:
        1,000 and 2,000.
    access_log : bool, optional
        Whether the API that is created logs each request: when, from where, its path and status, neither body nor query
        string. Logs are kept for a month. Default: False.
    function_options : aws_lambda.FunctionOptions, optional
        How the function runs: CDK's own options, but for ``role``, ``events``, ``function_name`` and those of the log
        format; the log level is ``INFO`` or ``DEBUG``, the timeout 1 to 29 seconds. Default: 512 MiB, 10 seconds,
        ARM64, system logs of failed invocations only (``WARN``), and a log group that keeps logs for a month.
    service_name : str, optional
        Name in logs. Default: the stack's name and the path in it.

    Examples
    --------
    >>> CounterApi(stack, "Api", table=counters, shown=[VIEWS, ROLLING])  # doctest: +SKIP
    """

    http_api: apigateway.HttpApi
    """The API; pass it to `EventIngest` to serve both from one."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        table: DedupCounterTable,
        shown: Sequence[Declarable],
        events: Sequence[Event] = (),
        authorizer: apigateway.IHttpRouteAuthorizer | None = None,
        tenant: Mapping[str, str] | None = None,
        page: LivePage | None = None,
        cache_age: Duration | None = None,
        allow_origins: Sequence[str] = (),
        throttle_rate: int = 1000,
        throttle_burst: int = 2000,
        access_log: bool = False,
        function_options: lambda_.FunctionOptions | None = None,
        service_name: str | None = None,
    ) -> None:
        cache_age = Duration.seconds(5) if cache_age is None else cache_age
        timeout = timeout_of(function_options, Duration.seconds(10), 1, 29)
        require_instance("table", table, DedupCounterTable)
        declarations = _require_shown(shown)
        readable = _require_events(events, declarations)
        authorizer = _http.authorizer_of(authorizer)
        bound = _http.require_tenant(tenant, authorizer)
        _http.require_served(bound, (*declarations, *readable))
        _require_page(page, authorizer, declarations)
        require_duration("cache_age", cache_age, Duration.seconds(0), Duration.days(1))
        _http.require_settings(allow_origins, throttle_rate, throttle_burst, access_log=access_log)
        super().__init__(scope, construct_id, service_name, function_options)
        require_same_place("table", self, table.table)
        declared = TableDeclarations.of(table.table)
        declared.add(api_declarations=declarations, events=readable)
        declared.warn_if_uncounted(
            self, lambda: [item.name for item in declarations if item not in declared.declarations], "this API shows"
        )
        self.http_api = _http.build_api(
            self,
            description="Serves counts",
            allow_origins=allow_origins,
            allow_methods=[apigateway.CorsHttpMethod.GET, apigateway.CorsHttpMethod.POST],
            throttle_rate=throttle_rate,
            throttle_burst=throttle_burst,
            access_log=access_log,
        )
        cache_scope = "public" if _http.is_public(authorizer) else "private"
        environment = {
            "TABLE_NAME": table.table_name,
            "DECLARATIONS": encode(declarations),
            "CACHE_CONTROL": f"{cache_scope}, max-age={Tokenization.stringify_number(cache_age.to_seconds())}",
            **_http.tenant_environment(bound),
        }
        if readable:
            environment["EVENTS"] = encode(readable, attributes=True)
        if page is not None:
            environment["PAGE"] = page._settings()
        role = self._build_role("Role", "Reads a table's counts")
        table.grant_read(role)
        acknowledge_resource(role, "Only the indexes of this table.", f"{table.table_arn}/index/*")
        self.function = self._build_function(
            "Function",
            description="Serves counts",
            handler="api",
            environment=environment,
            role=role,
            timeout=timeout,
            page=page is not None,
        )
        integration = integrations.HttpLambdaIntegration("Reads", self.function)
        routes = [("/v1/{proxy+}", _GET), ("/v1/batch", apigateway.HttpMethod.POST), ("/openapi.json", _GET)]
        for path, method in (*routes, *(() if page is None else (("/", _GET), ("/page/{name}", _GET)))):
            _http.require_new_route(self.http_api, path)
            self.http_api.add_routes(path=path, methods=[method], integration=integration, authorizer=authorizer)
        subject = "counts and the events" if readable else "counts"
        risk = f"anybody can read the {subject} it shows, and each request costs you money."
        _http.warn_if_public(self, authorizer, risk)


def _require_shown(declarables: Sequence[Declarable]) -> tuple[Declaration, ...]:
    allowed = "a list of Aggregate, Window, Distinct, ActiveMembers, Percentiles, Extremes or Ranks"
    require_list("shown", declarables, Declarable, allowed)
    # Neither who was active when, nor all but the last digit of scores: a read of the whole uses these.
    parts = (part for part in flatten(declarables) if not digit_of(part))
    declarations = tuple(part for part in parts if isinstance(part, Window) or not part._longest)
    if not declarations:
        raise InvalidArgumentError("shown", declarables, "at least one declaration")
    names = [declared.name for declared in declarations]
    if len(set(names)) < len(names):
        raise InvalidArgumentError("shown", names, "each declaration only once")
    for declared in declarations:
        _require_askable("shown", declared, fields_of(declared, "get")[1] or ())
    return tuple(sorted(declarations, key=lambda declared: declared.name))


def _require_events(events: Sequence[Event], declarations: Sequence[Declaration]) -> tuple[Event, ...]:
    names = {declared.name for declared in declarations}
    for event in require_list("events", events, Event, "a list of Event"):
        if event.name in names:
            raise InvalidArgumentError("events", event.name, "each name only once, those of `shown` included")
        names.add(event.name)
        _require_askable("events", event, event.fields)
    return tuple(sorted(events, key=lambda event: event.name))


def _require_askable(argument: str, declared: Declaration | Event, fields: Iterable[str]) -> None:
    if clashes := (reserved := parameters_of(declared)) & {*fields}:
        allowed = f"fields other than {', '.join(sorted(reserved))}, which are request parameters"
        raise InvalidArgumentError(argument, f"{declared.name}.{min(clashes)}", allowed)


def _require_page(
    page: LivePage | None, authorizer: apigateway.IHttpRouteAuthorizer, declarations: Sequence[Declaration]
) -> None:
    if page is None:
        return
    require_instance("page", page, LivePage)
    if not _http.is_public(authorizer):
        allowed = "None unless authorizer=HttpNoneAuthorizer(), because browsers do not sign requests"
        raise InvalidArgumentError("page", page.title, allowed)
    active = () if page.active is None else (page.active._parts[-1],)
    needed: tuple[Declaration, ...] = (page.total, page.top, page.window, *active)
    for declared in needed:
        if declared not in declarations:
            raise InvalidArgumentError("page", declared.name, "only declarations listed in shown")


def _first(aggregate: Aggregate) -> str | None:
    return next((name for name, measure in aggregate.measures.items() if isinstance(measure, Count | Sum)), None)
