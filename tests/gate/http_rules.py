"""HTTP APIs: who may call, what a browser may send, what is logged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from tests.gate.function_rules import variables
from tests.gate.rule import rule
from tests.gate.template import Resource, Template, covers, references, text

_SIGNED: Final = {"authorization", "content-type", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"}
_CLAIMS: Final = {"JWT": "claims.", "CUSTOM": "lambda.", "AWS_IAM": "iam."}


def _authorization(route: Resource) -> str:
    return str(route.properties.get("AuthorizationType", "NONE"))


@rule("apigateway/latest/developerguide/http-api-cors.html")
def browsers_may_send_what_a_signature_takes(template: Template) -> Iterator[str]:
    """Without these headers allowed, the preflight of a signed request fails."""
    for api in template.each("ApiGatewayV2::Api"):
        cors = api["CorsConfiguration"]
        if not cors:
            continue
        headers = {header.lower() for header in cors.get("AllowHeaders", ())}
        if "*" not in headers and not headers >= _SIGNED:
            yield f"{api.id}: CORS lacks {', '.join(sorted(_SIGNED - headers))}"
        if cors.get("AllowCredentials") and "*" in cors.get("AllowOrigins", ()):
            yield f"{api.id}: credentials from any origin"


@rule("apigateway/latest/developerguide/http-api-access-control-iam.html")
def routes_have_their_authorizer(template: Template) -> Iterator[str]:
    """A token needs an authorizer that checks it; an authorizer without a type checks nothing."""
    for route in template.each("ApiGatewayV2::Route"):
        needs = _authorization(route) in ("JWT", "CUSTOM")
        if needs != bool(route["AuthorizerId"]):
            yield f"{route.id}: {_authorization(route)} with authorizer {route['AuthorizerId']}"


@rule("apigateway/latest/developerguide/http-api-lambda-authorizer.html")
def authorizers_may_invoke_their_functions(template: Template) -> Iterator[str]:
    """A Lambda authorizer needs a permission, or a role, or every request is answered with 500."""
    for authorizer in template.each("ApiGatewayV2::Authorizer"):
        function = template.of(authorizer["AuthorizerUri"], "Lambda::Function")
        if authorizer["AuthorizerType"] != "REQUEST" or function is None or authorizer["AuthorizerCredentialsArn"]:
            continue
        permissions = template.each("Lambda::Permission")
        if not any(
            function.id in references(one["FunctionName"]) and authorizer.id in references(one["SourceArn"])
            for one in permissions
        ):
            yield f"{authorizer.id}: may not invoke {function.id}"


@rule("apigateway/latest/developerguide/http-api-develop-integrations-aws-services.html")
def apis_may_send_to_their_queues(template: Template) -> Iterator[str]:
    """A service integration names what it calls with, and its role may do so."""
    for integration in template.each("ApiGatewayV2::Integration"):
        if integration["IntegrationSubtype"] != "SQS-SendMessage":
            continue
        parameters = integration["RequestParameters"] or {}
        queue = template.of(parameters.get("QueueUrl"), "SQS::Queue")
        if queue is None or "MessageBody" not in parameters or integration["PayloadFormatVersion"] != "1.0":
            yield f"{integration.id}: incomplete"
            continue
        arn = {"Fn::GetAtt": [queue.id, "Arn"]}
        allowed = template.allowed(integration["CredentialsArn"])
        if not any(one.action == "sqs:SendMessage" and covers(one.resource, arn) for one in allowed):
            yield f"{integration.id}: may not send to {queue.id}"


@rule("apigateway/latest/developerguide/http-api-logging.html")
def access_is_logged_without_growing_the_accounts_policy(template: Template) -> Iterator[str]:
    """Groups elsewhere than in /aws/vendedlogs/ grow one resource policy of 5,120 characters for all of an account."""
    for stage in template.each("ApiGatewayV2::Stage"):
        group = template.of((stage["AccessLogSettings"] or {}).get("DestinationArn"), "Logs::LogGroup")
        if group is None:
            yield f"{stage.id}: no access log"
        elif not text(group["LogGroupName"] or "").startswith("/aws/vendedlogs/"):
            yield f"{stage.id}: logs to {text(group['LogGroupName'] or 'a group without a name')}"


@rule("apigateway/latest/developerguide/http-api-throttling.html")
def stages_are_throttled(template: Template) -> Iterator[str]:
    """Each below the account's 10,000 requests per second, with a burst of 5,000."""
    for stage in template.each("ApiGatewayV2::Stage"):
        settings = stage["DefaultRouteSettings"] or {}
        rate, burst = settings.get("ThrottlingRateLimit", 0), settings.get("ThrottlingBurstLimit", 0)
        if not 0 < rate <= 10_000 or not 0 < burst <= 5_000:
            yield f"{stage.id}: {rate} requests per second, burst {burst}"
        if stage["StageName"] == "$default" and not stage["AutoDeploy"]:
            yield f"{stage.id}: nothing deploys its routes"


@rule("apigateway/latest/developerguide/http-api-access-control.html")
def caches_keep_what_is_protected_private(template: Template) -> Iterator[str]:
    """A shared cache must not answer for an authorizer; it answers no changes."""
    for function in template.each("Lambda::Function"):
        kept = [route for route in template.routes_to(function) if not str(route["RouteKey"]).startswith("PUT ")]
        protected = any(_authorization(route) != "NONE" for route in kept)
        if protected and str(variables(function).get("CACHE_CONTROL", "")).startswith("public"):
            yield f"{function.id}: answers are public behind an authorizer"


@rule("apigateway/latest/developerguide/http-api-develop-integrations-lambda.html")
def tenants_come_from_the_authorizer(template: Template) -> Iterator[str]:
    """Each claim that binds a tenant is one that the authorizer of every route puts into the request."""
    for function in template.each("Lambda::Function"):
        tenant = variables(function).get("TENANT")
        for route in template.routes_to(function) if tenant else ():
            prefix = _CLAIMS.get(_authorization(route))
            for path in json.loads(text(tenant)).values():
                if prefix is None or not path.startswith(prefix):
                    yield f"{route.id}: {_authorization(route)} gives no {path}"
