"""Functions: what Lambda accepts, and who may invoke them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Final

from tests.gate.rule import rule
from tests.gate.template import Resource, Template, references, text

_RESERVED: Final = {
    *("_HANDLER", "_X_AMZN_TRACE_ID", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_EXECUTION_ENV", "LAMBDA_TASK_ROOT"),
    *("AWS_LAMBDA_FUNCTION_NAME", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_VERSION"),
    *("AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_GROUP_NAME", "AWS_LAMBDA_LOG_STREAM_NAME"),
    *("AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_LAMBDA_RUNTIME_API"),
}


def variables(function: Resource) -> dict[str, Any]:
    found: dict[str, Any] = (function["Environment"] or {}).get("Variables", {})
    return found


@rule("lambda/latest/dg/gettingstarted-limits.html")
def environments_fit(template: Template) -> Iterator[str]:
    """4 KB in all, measured as JSON, which escapes quotes."""
    for function in template.each("Lambda::Function"):
        size = len(json.dumps({name: text(value) for name, value in variables(function).items()}))
        if size > 4096:
            yield f"{function.id}: an environment of {size} bytes"


@rule("lambda/latest/dg/configuration-envvars.html")
def environments_leave_lambdas_own_variables_alone(template: Template) -> Iterator[str]:
    """Lambda refuses names that it sets itself."""
    for function in template.each("Lambda::Function"):
        yield from (f"{function.id}: the variable {name}" for name in sorted(_RESERVED & {*variables(function)}))


@rule("lambda/latest/dg/gettingstarted-limits.html")
def functions_stay_within_bounds(template: Template) -> Iterator[str]:
    """128 to 10,240 MB, 15 minutes, five layers, a description of 256 characters."""
    for function in template.each("Lambda::Function"):
        value = function.properties.get
        if not 128 <= value("MemorySize", 128) <= 10_240:
            yield f"{function.id}: {value('MemorySize')} MB"
        if not 1 <= value("Timeout", 3) <= 900:
            yield f"{function.id}: a timeout of {value('Timeout')} s"
        if len(value("Layers", [])) > 5 or len(value("Description", "")) > 256:
            yield f"{function.id}: too many layers, or too long a description"


@rule("apigateway/latest/developerguide/http-api-quotas.html")
def requests_are_answered_in_time(template: Template) -> Iterator[str]:
    """An HTTP API waits 30 seconds for a function."""
    for function in template.each("Lambda::Function"):
        if any(template.routes_to(function)) and function.properties.get("Timeout", 3) >= 30:
            yield f"{function.id}: answers within {function['Timeout']} s"


@rule("lambda/latest/dg/python-handler.html")
def handlers_exist(template: Template) -> Iterator[str]:
    """``module.function``, as it is in the asset."""
    for function in template.each("Lambda::Function"):
        module, _, _ = str(function["Handler"]).rpartition(".")
        if find_spec(module.split(".")[0]) is None or find_spec(module) is None:
            yield f"{function.id}: no module {module}"


@rule("lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html")
def metrics_pass_the_log_level(template: Template) -> Iterator[str]:
    """Metrics are log lines that Lambda takes for INFO: a higher level drops them."""
    for function in template.each("Lambda::Function"):
        level = (function["LoggingConfig"] or {}).get("ApplicationLogLevel", "INFO")
        if level not in ("TRACE", "DEBUG", "INFO"):
            yield f"{function.id}: log level {level}"


@rule("lambda/latest/dg/access-control-resource-based.html")
def permissions_name_who_invokes(template: Template) -> Iterator[str]:
    """A service's permission without a source lets that service's other customers invoke the function."""
    for permission in template.each("Lambda::Permission"):
        if str(permission["Principal"]).endswith(".amazonaws.com") and not permission["SourceArn"]:
            yield f"{permission.id}: any source of {permission['Principal']}"


@rule("eventbridge/latest/userguide/eb-use-resource-based.html")
def rules_may_invoke_their_targets(template: Template) -> Iterator[str]:
    """A rule whose target lacks the permission matches, and nothing happens."""
    for one in template.each("Events::Rule"):
        for target in one["Targets"] or ():
            function = template.of(target["Arn"], "Lambda::Function", "Lambda::Alias")
            if function is not None and not any(
                permission["Principal"] == "events.amazonaws.com" and one.id in references(permission["SourceArn"])
                for permission in _permissions(template, function)
            ):
                yield f"{one.id}: may not invoke {function.id}"


@rule("apigateway/latest/developerguide/http-api-develop-integrations-lambda.html")
def routes_may_invoke_their_functions(template: Template) -> Iterator[str]:
    """Each route has a permission of its API, any stage, its method and path."""
    for function in template.each("Lambda::Function"):
        for route in template.routes_to(function):
            path = str(route["RouteKey"]).partition(" ")[2] or "*"
            if not any(
                permission["Principal"] == "apigateway.amazonaws.com"
                and references(route["ApiId"]) <= references(permission["SourceArn"])
                and text(permission["SourceArn"]).endswith((f"/*/*{path}", f"/*{path}", "/*/*"))
                for permission in _permissions(template, function)
            ):
                yield f"{route.id}: {route['RouteKey']} may not invoke {function.id}"


def _permissions(template: Template, function: Resource) -> list[Resource]:
    return [one for one in template.each("Lambda::Permission") if function.id in references(one["FunctionName"])]


@rule("lambda/latest/dg/configuration-vpc.html")
def functions_in_a_vpc_may_have_network_interfaces(template: Template) -> Iterator[str]:
    """The role must be able to create, describe and delete them, or the function is never created."""
    for function in template.each("Lambda::Function"):
        role = template.of(function["Role"], "IAM::Role")
        if not function["VpcConfig"] or role is None:
            continue
        actions = {one.action for one in template.allowed(function["Role"])}
        managed = any("AWSLambdaVPCAccessExecutionRole" in text(arn) for arn in role["ManagedPolicyArns"] or ())
        needed = {f"ec2:{name}NetworkInterface" for name in ("Create", "Delete")} | {"ec2:DescribeNetworkInterfaces"}
        if not managed and not needed <= actions:
            yield f"{role.id}: may not {', '.join(sorted(needed - actions))}"
