"""The HTTP API that `EventIngest` and `CounterApi` build, who may use it, and callers that see only their own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from aws_cdk import Annotations, Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_dynamodb_counters._arguments import require_instance, require_integer, require_member, require_origins
from cdk_dynamodb_counters._synth import acknowledge
from dynamodb_counters._declarations import Declaration, Event
from dynamodb_counters._reads.question import limits_of, resources_of
from dynamodb_counters.errors import InvalidArgumentError

# Where API Gateway puts what an authorizer knows, by the first part of a path.
# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
_GIVEN_BY: Final[dict[str, tuple[type, ...]]] = {
    "claims": (authorizers.HttpJwtAuthorizer, authorizers.HttpUserPoolAuthorizer),
    "lambda": (authorizers.HttpLambdaAuthorizer,),
    "iam": (authorizers.HttpIamAuthorizer,),
}
_IAM: Final = ("accountId", "callerId", "principalOrgId", "userArn", "userId")
_ALLOWED: Final = "a mapping of fields to claims, such as {'customer': 'claims.sub'}"
_PATHS: Final = "_counters_paths"
_RATE: Final = 1000
_BURST: Final = 2000
# Headers that scripts send with a JSON body, a token, or a signature.
_HEADERS: Final = ("authorization", "content-type", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token")
# Neither query string nor body: they hold what is counted.
_ACCESS_LOG: Final = {
    "requestId": "$context.requestId",
    "ip": "$context.identity.sourceIp",
    "time": "$context.requestTime",
    "method": "$context.httpMethod",
    "path": "$context.path",
    "status": "$context.status",
    "bytes": "$context.responseLength",
    "error": "$context.integrationErrorMessage",
}


def authorizer_of(authorizer: apigateway.IHttpRouteAuthorizer | None) -> apigateway.IHttpRouteAuthorizer:
    """Return an authorizer, by default of IAM: an endpoint is public only if the caller says so."""
    authorizer = authorizers.HttpIamAuthorizer() if authorizer is None else authorizer
    allowed = "an authorizer such as HttpIamAuthorizer(), or HttpNoneAuthorizer() for a public endpoint"
    require_member("authorizer", authorizer, "bind", allowed)
    return authorizer


def require_settings(
    allow_origins: Sequence[str], throttle_rate: int | None, throttle_burst: int | None, *, access_log: bool
) -> None:
    require_origins("allow_origins", allow_origins)
    require_integer("throttle_rate", _RATE if throttle_rate is None else throttle_rate, 1, 10_000)
    require_integer("throttle_burst", _BURST if throttle_burst is None else throttle_burst, 1, 5_000)
    require_instance("access_log", access_log, bool, "True or False")


def require_new_route(http_api: apigateway.HttpApi, path: str) -> None:
    """Refuse a path that an API has already: CloudFormation would fail to create the second route."""
    paths: set[str] = vars(http_api).setdefault(_PATHS, set())
    if path in paths:
        raise InvalidArgumentError("path", path, "a path that no other construct on this API has")
    paths.add(path)


def is_public(authorizer: apigateway.IHttpRouteAuthorizer) -> bool:
    return isinstance(authorizer, apigateway.HttpNoneAuthorizer)


def warn_if_public(scope: Construct, authorizer: apigateway.IHttpRouteAuthorizer, risk: str) -> None:
    """Add a warning at synth if anybody may call the endpoint."""
    if not is_public(authorizer):
        return
    Annotations.of(scope).add_warning_v2("dynamodb-counters:publicEndpoint", f"The endpoint is public: {risk}")
    acknowledge(scope, "APIG4", "Public by an explicit HttpNoneAuthorizer, with a warning at synth.")


def build_api(
    scope: Construct,
    *,
    description: str,
    allow_origins: Sequence[str],
    allow_methods: Sequence[apigateway.CorsHttpMethod],
    throttle_rate: int | None,
    throttle_burst: int | None,
    access_log: bool,
) -> apigateway.HttpApi:
    """Build an HTTP API with one stage, which throttles requests and, if asked, writes an access log."""
    cors = apigateway.CorsPreflightOptions(
        allow_origins=list(allow_origins),
        allow_methods=list(allow_methods),
        allow_headers=list(_HEADERS),
        max_age=Duration.hours(1),
    )
    api = apigateway.HttpApi(
        scope,
        "HttpApi",
        description=description,
        create_default_stage=False,
        cors_preflight=cors if allow_origins else None,
    )
    stage = apigateway.HttpStage(
        scope,
        "Stage",
        http_api=api,
        stage_name="$default",
        auto_deploy=True,
        throttle=apigateway.ThrottleSettings(rate_limit=throttle_rate or _RATE, burst_limit=throttle_burst or _BURST),
    )
    if not access_log:
        acknowledge(stage, "APIG1", "Metrics count requests and failures; access_log=True logs each request.")
        return api
    # API Gateway adds each group elsewhere to a resource policy that all of an account's APIs share: 5,120 bytes.
    log_group = logs.LogGroup(
        scope, "AccessLog", log_group_name=f"/aws/vendedlogs/apis/{api.api_id}", retention=logs.RetentionDays.ONE_MONTH
    )
    resource = stage.node.default_child
    assert isinstance(resource, apigateway.CfnStage)
    resource.access_log_settings = apigateway.CfnStage.AccessLogSettingsProperty(
        destination_arn=log_group.log_group_arn, format=json.dumps(_ACCESS_LOG)
    )
    return api


def require_tenant(tenant: object, authorizer: apigateway.IHttpRouteAuthorizer) -> Mapping[str, str]:
    """Return the claim of each bound field; refuse one that the authorizer cannot give."""
    if tenant is None:
        return {}
    if not isinstance(tenant, Mapping) or not tenant:
        raise InvalidArgumentError("tenant", tenant, _ALLOWED)
    for field, path in tenant.items():
        if not isinstance(field, str) or not field or not isinstance(path, str):
            raise InvalidArgumentError("tenant", tenant, _ALLOWED)
        source, _, name = path.partition(".")
        if not name or not isinstance(authorizer, _GIVEN_BY.get(source, ())):
            paths = [f"{source}.NAME" for source, kinds in _GIVEN_BY.items() if isinstance(authorizer, kinds)]
            allowed = f"{paths[0]}, as the authorizer gives" if paths else "None: the authorizer identifies no caller"
            raise InvalidArgumentError("tenant", path, allowed)
        if source == "iam" and name not in _IAM:
            raise InvalidArgumentError("tenant", path, f"one of {', '.join(f'iam.{key}' for key in _IAM)}")
    return tenant


def require_posted(
    tenant: object, mode: str, authorizer: apigateway.IHttpRouteAuthorizer, event: Event
) -> Mapping[str, str]:
    """Return the claim of each bound attribute; refuse one outside the event's key, by which events differ."""
    if tenant is not None and mode == "direct":
        raise InvalidArgumentError("tenant", tenant, "None in direct mode, which checks nothing")
    bound = require_tenant(tenant, authorizer)
    for field in bound:
        if field not in event.fields:
            raise _unbound(field, event, event.fields)
    _require_apart(bound, event)
    return bound


def require_served(tenant: Mapping[str, str], served: Iterable[Declaration | Event]) -> None:
    """Refuse whatever could not be limited to one tenant."""
    for declared in served:
        # A listing of events that are items of their own is limited by the partition key alone.
        fields = limits_of(declared, resources_of(declared)[0])
        for field in tenant:
            if field not in fields:
                raise _unbound(field, declared, fields)
        if isinstance(declared, Event):
            _require_apart(tenant, declared)


def tenant_environment(tenant: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that names a function's tenants, if it has any."""
    return {"TENANT": json.dumps(dict(tenant), separators=(",", ":"), sort_keys=True)} if tenant else {}


def _require_apart(tenant: Mapping[str, str], event: Event) -> None:
    """Refuse packed events of which tenants share logs: a cold writer or reader of one would read those of all."""
    if tenant and event.packed is not None and event.packed.tenant not in tenant:
        allowed = f"a bound field, {' or '.join(map(repr, tenant))}, as Packed.tenant of {event.name!r}"
        raise InvalidArgumentError("tenant", event.packed.tenant, allowed)


def _unbound(field: str, declared: Declaration | Event, fields: tuple[str, ...]) -> InvalidArgumentError:
    return InvalidArgumentError(
        "tenant", field, f"a field of {declared.name!r}, which has {', '.join(fields) or 'none'}"
    )
