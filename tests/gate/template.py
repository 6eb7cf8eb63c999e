"""A synthesized template, as rules read it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

LONGEST_UNKNOWN: Final = "x" * 255
"""Stands for a value known only at deployment: as long as the longest name of a table."""


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
class Allowed:
    """One action that a role's policies allow, on one resource as the template writes it."""

    action: str
    resource: Any


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

    def allowed(self, role: Any) -> list[Allowed]:
        """Permissions by a role's own policies."""
        found = self.of(role, "IAM::Role")
        if found is None:
            return []
        documents = [policy["PolicyDocument"] for policy in found["Policies"] or ()]
        documents += [
            policy["PolicyDocument"]
            for policy in self.each("IAM::Policy", "IAM::ManagedPolicy")
            if found.id in {name for one in policy["Roles"] or () for name in references(one)}
        ]
        return [
            Allowed(action, resource)
            for document in documents
            for statement in document["Statement"]
            if statement["Effect"] == "Allow"
            for action in listed(statement["Action"])
            for resource in listed(statement["Resource"])
        ]

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
    if isinstance(value.get("Fn::Sub"), str):
        found |= set(re.findall(r"\$\{(\w+)", value["Fn::Sub"]))
    return found


def text(value: Any, unknown: str = LONGEST_UNKNOWN) -> str:
    """A value as deployed, with `unknown` for what is known only then."""
    if isinstance(value, dict) and "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return str(separator).join(text(part, unknown) for part in parts)
    if isinstance(value, dict) and isinstance(value.get("Fn::Sub"), str):
        return re.sub(r"\$\{[^}]+\}", unknown, value["Fn::Sub"])
    return unknown if isinstance(value, dict) else str(value)


def covers(allowed: Any, needed: Any) -> bool:
    """Whether a policy's resource covers another, both as the template writes them."""
    pattern = "".join(".*" if part == "*" else re.escape(part) for part in re.split(r"(\*)", json.dumps(allowed)[1:-1]))
    return allowed == "*" or re.fullmatch(pattern, json.dumps(needed)[1:-1]) is not None
