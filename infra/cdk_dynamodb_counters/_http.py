"""What `EventIngest` and `CounterApi` have in common: the HTTP API, its one stage, its functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import Annotations, Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_dynamodb_counters._metrics import NAMESPACE
from cdk_dynamodb_counters._nag import acknowledge
from cdk_dynamodb_counters._runtimes import RUNTIMES
from cdk_dynamodb_counters._validations import EnvironmentSize
from dynamodb_counters.errors import InvalidArgumentError

_AUTHORIZERS: Final = (
    apigateway.HttpNoneAuthorizer,
    authorizers.HttpIamAuthorizer,
    authorizers.HttpJwtAuthorizer,
    authorizers.HttpLambdaAuthorizer,
    authorizers.HttpUserPoolAuthorizer,
)
# Who asked what, when and how it ended; no query string and no body, which hold what is counted.
_ACCESS: Final = {
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
    """Refuse what is no authorizer: an endpoint is public only where somebody says so."""
    if not isinstance(authorizer, _AUTHORIZERS):
        allowed = "HttpIamAuthorizer(), HttpJwtAuthorizer(…) or, for anybody, HttpNoneAuthorizer()"
        raise InvalidArgumentError("authorizer", authorizer, allowed)


def is_public(authorizer: apigateway.IHttpRouteAuthorizer) -> bool:
    """Tell whether anybody may pass."""
    return isinstance(authorizer, apigateway.HttpNoneAuthorizer)


def warn_if_public(scope: Construct, authorizer: apigateway.IHttpRouteAuthorizer, risk: str) -> None:
    """Tell the risk of an endpoint that anybody may use."""
    if not is_public(authorizer):
        return
    Annotations.of(scope).add_warning_v2("dynamodb-counters:publicEndpoint", f"The endpoint is public: {risk}")
    acknowledge(scope, "APIG4", "Public by an explicit HttpNoneAuthorizer, with a warning at synthesis.")


def build_api(
    scope: Construct,
    log_group: logs.ILogGroup,
    *,
    description: str,
    allow_origins: Sequence[str],
    allow_methods: Sequence[apigateway.CorsHttpMethod],
    throttle_rate: int,
    throttle_burst: int,
) -> apigateway.HttpApi:
    """Build an HTTP API with one stage that is throttled and logs who asked what."""
    cors = apigateway.CorsPreflightOptions(
        allow_origins=list(allow_origins),
        allow_methods=list(allow_methods),
        allow_headers=["authorization", "content-type"],
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
        throttle=apigateway.ThrottleSettings(rate_limit=throttle_rate, burst_limit=throttle_burst),
    )
    resource = stage.node.default_child
    assert isinstance(resource, apigateway.CfnStage)
    resource.access_log_settings = apigateway.CfnStage.AccessLogSettingsProperty(
        destination_arn=log_group.log_group_arn, format=json.dumps(_ACCESS)
    )
    return api


def build_role(scope: Construct, construct_id: str, log_group: logs.ILogGroup, description: str) -> iam.Role:
    """Build the role of a function: logs and, once it is traced, traces."""
    role = iam.Role(
        scope, construct_id, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"), description=description
    )
    log_group.grant_write(role)
    acknowledge(role, "IAM5", "X-Ray takes no resource.", "Resource::*")
    return role


def build_function(
    scope: Construct,
    construct_id: str,
    *,
    description: str,
    handler: str,
    code: lambda_.Code,
    environment: Mapping[str, str],
    service_name: str,
    role: iam.Role,
    log_group: logs.ILogGroup,
    memory_size: int,
    timeout: Duration,
) -> lambda_.Function:
    """Build a function that runs one of the runtime's handlers, if what it is told fits into its environment."""
    function = lambda_.Function(
        scope,
        construct_id,
        description=description,
        code=code,
        handler=f"dynamodb_counters.handlers.{handler}.handler",
        runtime=RUNTIMES[-1],
        architecture=lambda_.Architecture.ARM_64,
        memory_size=memory_size,
        timeout=timeout,
        role=role,
        environment={
            **environment,
            "POWERTOOLS_SERVICE_NAME": service_name,
            "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
            "POWERTOOLS_LOG_LEVEL": "INFO",
        },
        log_group=log_group,
        logging_format=lambda_.LoggingFormat.JSON,
        application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
        tracing=lambda_.Tracing.ACTIVE,
    )
    scope.node.add_validation(EnvironmentSize(function))
    return function
