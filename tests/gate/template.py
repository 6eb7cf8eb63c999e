"""A synthesized template, as rules read it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Final

_KINDS: Final = {
    "AWS::DynamoDB::GlobalTable": "table",
    "AWS::DynamoDB::Table": "source table",
    "AWS::Events::EventBus": "bus",
    "AWS::S3::Bucket": "bucket",
    "AWS::Logs::LogGroup": "log group",
    "AWS::KMS::Key": "key",
}
_ELSEWHERE: Final = {"*/*": "network", "event-bus/default": "bus"}
"""Kinds of resources that are in no template."""


@dataclass(frozen=True)
class Resource:
    """A resource with its logical id."""

    id: str
    document: dict[str, Any]

    @property
    def type(self) -> str:
        return str(self.document["Type"])

    @property
    def properties(self) -> dict[str, Any]:
        values: dict[str, Any] = self.document.get("Properties", {})
        return values

    def __getitem__(self, name: str) -> Any:
        return self.properties.get(name)


@dataclass(frozen=True)
class Template:
    """A template with its name."""

    name: str
    document: dict[str, Any]

    @cached_property
    def resources(self) -> dict[str, Resource]:
        return {name: Resource(name, document) for name, document in self.document["Resources"].items()}

    def instances(self, *types: str) -> Iterator[Resource]:
        """Yield the resources of some types, named without their first part: ``Lambda::Function``."""
        yield from (resource for resource in self.resources.values() if resource.type.removeprefix("AWS::") in types)

    def of(self, value: Any, *types: str) -> Resource | None:
        """Return the resource of one of the types that a value refers to, if it refers to one."""
        resources = [self.resources[name] for name in references(value) if name in self.resources]
        return next((resource for resource in resources if resource.type.removeprefix("AWS::") in types), None)

    def invoked(self, arn: Any) -> Resource | None:
        """Return the function that an ARN names, its own or an alias's."""
        alias = self.of(arn, "Lambda::Alias")
        return self.of(arn if alias is None else alias["FunctionName"], "Lambda::Function")

    def functions(self) -> Iterator[Resource]:
        """Yield the functions that run our handlers."""
        for function in self.instances("Lambda::Function"):
            if str(function["Handler"]).startswith("counters_lambda."):
                yield function

    def allowed(self, role: Any) -> list[tuple[str, Any]]:
        """Actions that a role's policies allow, each on a resource as the template writes it."""
        definition = self.of(role, "IAM::Role")
        if definition is None:
            return []
        documents = [policy["PolicyDocument"] for policy in definition["Policies"] or ()]
        documents += [
            policy["PolicyDocument"]
            for policy in self.instances("IAM::Policy", "IAM::ManagedPolicy")
            if definition.id in {name for entry in policy["Roles"] or () for name in references(entry)}
        ]
        return [(action, resource) for document in documents for action, resource, _ in granted(document)]

    def mappings(self, source: str) -> Iterator[tuple[Resource, Resource]]:
        """Yield the event source mappings of a kind of source, ``stream`` or ``queue``, each with its function."""
        for mapping in self.instances("Lambda::EventSourceMapping"):
            function = self.of(mapping["FunctionName"], "Lambda::Function")
            kind = "queue" if self.of(mapping["EventSourceArn"], "SQS::Queue") else "stream"
            if function is not None and kind == source:
                yield mapping, function

    def routes_to(self, function: Resource) -> Iterator[Resource]:
        """Yield the routes of HTTP APIs that invoke a function."""
        for route in self.instances("ApiGatewayV2::Route"):
            integration = self.of(route["Target"], "ApiGatewayV2::Integration")
            if integration is not None and function.id in references(integration["IntegrationUri"]):
                yield route

    def kind(self, resource: Resource) -> str:
        """Kind of a resource, so that templates compare: a table, a queue, a queue of dead letters, ..."""
        if resource.type == "AWS::SQS::Queue":
            dead = [(queue["RedrivePolicy"] or {}).get("deadLetterTargetArn") for queue in self.instances("SQS::Queue")]
            return "dead letters" if resource.id in references(dead) else "queue"
        return _KINDS.get(resource.type, resource.id)

    def named(self, resource: Any) -> str:
        """Return a policy's resource, by its kind."""
        if isinstance(resource, str):
            return resource
        parts = resource["Fn::Join"][1] if "Fn::Join" in resource else [resource]
        target = self.resources.get(next(iter(references(parts[0])), ""))
        if target is None:
            arn = "".join(part if isinstance(part, str) else "?" for part in parts)
            return _ELSEWHERE.get(arn.rpartition(":")[2], arn)
        stream = "/stream" if "StreamArn" in json.dumps(parts[0]) else ""
        return self.kind(target) + stream + "".join(parts[1:])


def granted(document: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Actions that a policy allows, each on a resource as the template writes it, and under which condition."""
    for statement in document["Statement"]:
        if statement["Effect"] == "Allow":
            pairs = product(listed(statement["Action"]), listed(statement["Resource"]))
            yield from ((action, resource, statement.get("Condition")) for action, resource in pairs)


def variables(function: Resource) -> dict[str, Any]:
    values: dict[str, Any] = (function["Environment"] or {}).get("Variables", {})
    return values


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def references(value: Any) -> set[str]:
    """Return the logical ids that a value refers to, wherever in it."""
    if isinstance(value, list):
        return {name for member in value for name in references(member)}
    if not isinstance(value, dict):
        return set()
    names = {name for member in value.values() for name in references(member)}
    if isinstance(value.get("Ref"), str):
        names.add(value["Ref"])
    if "Fn::GetAtt" in value:
        attribute = value["Fn::GetAtt"]
        names.add(attribute.split(".")[0] if isinstance(attribute, str) else attribute[0])
    return names
