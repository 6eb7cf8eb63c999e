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
        found: dict[str, Any] = self.document.get("Properties", {})
        return found

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

    def each(self, *types: str) -> Iterator[Resource]:
        """The resources of some types, named without their first part: ``Lambda::Function``."""
        yield from (one for one in self.resources.values() if one.type.removeprefix("AWS::") in types)

    def of(self, value: Any, *types: str) -> Resource | None:
        """The resource of one of the types that a value refers to, if it refers to one."""
        found = [self.resources[name] for name in references(value) if name in self.resources]
        return next((one for one in found if one.type.removeprefix("AWS::") in types), None)

    def invoked(self, arn: Any) -> Resource | None:
        """The function that an ARN names, its own or an alias's."""
        alias = self.of(arn, "Lambda::Alias")
        return self.of(arn if alias is None else alias["FunctionName"], "Lambda::Function")

    def functions(self) -> Iterator[Resource]:
        """The functions that run our handlers."""
        for function in self.each("Lambda::Function"):
            if str(function["Handler"]).startswith("counters_lambda."):
                yield function

    def allowed(self, role: Any) -> list[tuple[str, Any]]:
        """Actions that a role's policies allow, each on a resource as the template writes it."""
        found = self.of(role, "IAM::Role")
        if found is None:
            return []
        documents = [policy["PolicyDocument"] for policy in found["Policies"] or ()]
        documents += [
            policy["PolicyDocument"]
            for policy in self.each("IAM::Policy", "IAM::ManagedPolicy")
            if found.id in {name for one in policy["Roles"] or () for name in references(one)}
        ]
        return [(action, resource) for document in documents for action, resource, _ in granted(document)]

    def mappings(self, source: str) -> Iterator[tuple[Resource, Resource]]:
        """The event source mappings of a kind of source, ``stream`` or ``queue``, each with its function."""
        for mapping in self.each("Lambda::EventSourceMapping"):
            function = self.of(mapping["FunctionName"], "Lambda::Function")
            kind = "queue" if self.of(mapping["EventSourceArn"], "SQS::Queue") else "stream"
            if function is not None and kind == source:
                yield mapping, function

    def routes_to(self, function: Resource) -> Iterator[Resource]:
        """The routes of HTTP APIs that invoke a function."""
        for route in self.each("ApiGatewayV2::Route"):
            integration = self.of(route["Target"], "ApiGatewayV2::Integration")
            if integration is not None and function.id in references(integration["IntegrationUri"]):
                yield route

    def kind(self, resource: Resource) -> str:
        """Kind of a resource, so that templates compare: a table, a queue, a queue of dead letters, ..."""
        if resource.type == "AWS::SQS::Queue":
            dead = [(queue["RedrivePolicy"] or {}).get("deadLetterTargetArn") for queue in self.each("SQS::Queue")]
            return "dead letters" if resource.id in references(dead) else "queue"
        return _KINDS.get(resource.type, resource.id)

    def named(self, resource: Any) -> str:
        """A policy's resource, by its kind."""
        if isinstance(resource, str):
            return resource
        parts = resource["Fn::Join"][1] if "Fn::Join" in resource else [resource]
        found = self.resources.get(next(iter(references(parts[0])), ""))
        if found is None:
            known = "".join(part if isinstance(part, str) else "?" for part in parts)
            return _ELSEWHERE.get(known.rpartition(":")[2], known)
        stream = "/stream" if "StreamArn" in json.dumps(parts[0]) else ""
        return self.kind(found) + stream + "".join(parts[1:])


def granted(document: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Actions that a policy allows, each on a resource as the template writes it, and under which condition."""
    for statement in document["Statement"]:
        if statement["Effect"] == "Allow":
            pairs = product(listed(statement["Action"]), listed(statement["Resource"]))
            yield from ((action, resource, statement.get("Condition")) for action, resource in pairs)


def variables(function: Resource) -> dict[str, Any]:
    found: dict[str, Any] = (function["Environment"] or {}).get("Variables", {})
    return found


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def references(value: Any) -> set[str]:
    """The logical ids that a value refers to, wherever in it."""
    if isinstance(value, list):
        return {name for one in value for name in references(one)}
    if not isinstance(value, dict):
        return set()
    found = {name for one in value.values() for name in references(one)}
    if isinstance(value.get("Ref"), str):
        found.add(value["Ref"])
    if "Fn::GetAtt" in value:
        attribute = value["Fn::GetAtt"]
        found.add(attribute.split(".")[0] if isinstance(attribute, str) else attribute[0])
    return found
