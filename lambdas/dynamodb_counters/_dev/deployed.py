"""Resources that an app has deployed, as the emulator lists them: tables, what counts them, APIs, logs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import ClientError

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._dev.emulator import Emulator

_AGGREGATOR: Final = "dynamodb_counters.handlers.aggregator.handler"
_TABLES: Final = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable")
_FUNCTION: Final = "AWS::Lambda::Function"
_API: Final = "AWS::ApiGatewayV2::Api"
_ENDED: Final = "DELETE_COMPLETE"
_HASH: Final = re.compile(r"[0-9A-F]{8}$")


@dataclass(frozen=True)
class Function:
    """A deployed function: its id in the template without the hash, its name, and where it logs."""

    label: str
    name: str
    log_group: str
    table: str = ""
    declarations: tuple[Declaration, ...] = ()
    """Declarations of one that counts a table."""
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Api:
    """A deployed HTTP API: where the emulator answers for it, and its routes, such as `POST /events`."""

    url: str
    routes: tuple[str, ...]


@dataclass(frozen=True)
class Deployed:
    """The resources of all stacks that one looks at while developing."""

    tables: list[str] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    apis: list[Api] = field(default_factory=list)

    @property
    def aggregators(self) -> list[Function]:
        return [one for one in self.functions if one.table]


def deployed(emulator: Emulator) -> Deployed:
    found = Deployed()
    for resource in _resources(emulator.client("cloudformation")):
        kind, name = resource["ResourceType"], resource["PhysicalResourceId"]
        if kind in _TABLES:
            found.tables.append(name)
        elif kind == _FUNCTION:
            found.functions.append(_function(emulator.client("lambda"), resource["LogicalResourceId"], name))
        elif kind == _API:
            found.apis.append(_api(emulator, name))
    return found


def _resources(cloudformation: Any) -> Iterator[dict[str, Any]]:
    for page in cloudformation.get_paginator("list_stacks").paginate():
        for stack in page["StackSummaries"]:
            if stack["StackStatus"] != _ENDED:
                name = stack["StackName"]
                for resources in cloudformation.get_paginator("list_stack_resources").paginate(StackName=name):
                    yield from resources["StackResourceSummaries"]


def _function(functions: Any, logical_id: str, name: str) -> Function:
    settings = functions.get_function_configuration(FunctionName=name)
    group = settings.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{name}"
    variables = settings.get("Environment", {}).get("Variables", {})
    label = _HASH.sub("", logical_id)
    if settings.get("Handler") != _AGGREGATOR:
        return Function(label, name, group)
    return Function(label, name, group, variables["TABLE_NAME"], decode(variables["DECLARATIONS"]), variables)


def _api(emulator: Emulator, name: str) -> Api:
    try:
        routes = emulator.client("apigatewayv2").get_routes(ApiId=name)["Items"]
    except ClientError:
        routes = []
    url = f"{emulator.endpoint_url}/_aws/execute-api/{name}/$default"
    return Api(url, tuple(sorted(route["RouteKey"] for route in routes)))
