"""The HTTP API that `EventIngest` and `CounterApi` build, and who may use it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from aws_cdk import Annotations, Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_dynamodb_counters._nag import acknowledge
from dynamodb_counters.errors import InvalidArgumentError

_AUTHORIZERS: Final = (
    apigateway.HttpNoneAuthorizer,
    authorizers.HttpIamAuthorizer,
    authorizers.HttpJwtAuthorizer,
    authorizers.HttpLambdaAuthorizer,
    authorizers.HttpUserPoolAuthorizer,
)
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


def require_authorizer(authorizer: object) -> None:
    """Refuse anything but an authorizer: an endpoint is public only if the caller says so."""
    if not isinstance(authorizer, _AUTHORIZERS):
        allowed = "an authorizer such as HttpIamAuthorizer(), or HttpNoneAuthorizer() for a public endpoint"
        raise InvalidArgumentError("authorizer", authorizer, allowed)


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
    throttle_rate: int,
    throttle_burst: int,
) -> apigateway.HttpApi:
    """Build an HTTP API with one stage, which throttles requests and writes an access log."""
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
    # API Gateway adds each group elsewhere to a resource policy that all of an account's APIs share: 5,120 bytes.
    log_group = logs.LogGroup(
        scope, "AccessLog", log_group_name=f"/aws/vendedlogs/apis/{api.api_id}", retention=logs.RetentionDays.ONE_MONTH
    )
    stage = apigateway.HttpStage(
        scope,
        "Stage",
        http_api=api,
        stage_name="$default",
        auto_deploy=True,
        throttle=apigateway.ThrottleSettings(rate_limit=throttle_rate, burst_limit=throttle_burst),
    )
    resource = stage.node.default_child
    assert isinstance(resource, apigateway.CfnStage)
    resource.access_log_settings = apigateway.CfnStage.AccessLogSettingsProperty(
        destination_arn=log_group.log_group_arn, format=json.dumps(_ACCESS_LOG)
    )
    return api
