"""Facts known only at synth: resolved properties, late values, checks of all that is declared, cdk-nag findings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import jsii
from aws_cdk import (
    Acknowledgment,
    CfnResource,
    IInspectable,
    IStableAnyProducer,
    Lazy,
    Stack,
    Token,
    TreeInspector,
    Validations,
)
from constructs import Construct, IConstruct, IValidation


def resolved_property(resource: CfnResource, name: str) -> Any:
    """Return a property by its camel-case name, or None."""
    # The resource's getter does not work: jsii returns an empty or broken copy of a property that CDK produces lazily.
    inspector = TreeInspector()
    # Every generated resource class is inspectable; their common base class does not declare it.
    cast(IInspectable, resource).inspect(inspector)
    return Stack.of(resource).resolve(inspector.attributes["aws:cdk:cloudformation:props"].get(name))


def late_text(produce: Callable[[], str | None]) -> str:
    """Return a token for the text that ``produce`` returns at synth."""
    return Token.as_string(late_value(produce))


def late_number(produce: Callable[[], float]) -> float:
    """Return a token for the number that ``produce`` returns at synth."""
    return Token.as_number(late_value(produce))


def late_value(produce: Callable[[], Any]) -> Any:
    """Return a token for what ``produce`` returns at synth."""
    return Lazy.any(_Late(produce))


def check_at_synth(scope: Construct, find_problem: Callable[[], str | None]) -> None:
    """Fail synth with the problem that ``find_problem`` then returns, if any."""
    scope.node.add_validation(_Check(find_problem))


@jsii.implements(IStableAnyProducer)
class _Late:
    def __init__(self, produce: Callable[[], Any]) -> None:
        self._produce = produce

    def produce(self) -> Any:
        return self._produce()


@jsii.implements(IValidation)
class _Check:
    def __init__(self, find_problem: Callable[[], str | None]) -> None:
        self._find_problem = find_problem

    def validate(self) -> list[str]:
        problem = self._find_problem()
        return [] if problem is None else [problem]


def acknowledge(construct: IConstruct, rule: str, reason: str, finding: str = "") -> None:
    """Acknowledge an AwsSolutions rule such as ``"IAM5"``; ``finding`` selects one of several findings of the rule."""
    identifier = f"AwsSolutions::AwsSolutions-{rule}" + (f"[{finding}]" if finding else "")
    Validations.of(construct).acknowledge(Acknowledgment(id=identifier, reason=reason))


def acknowledge_resource(role: Construct, reason: str, arn: str) -> None:
    """Acknowledge that a role may do something with all resources that an ARN with a wildcard means."""

    def find() -> None:
        # Only at synth is it known how the role's stack refers to what is in another one.
        acknowledge(role, "IAM5", reason, "Resource::" + _flat(Stack.of(role).resolve(arn)))

    check_at_synth(role, find)


def _flat(value: Any) -> str:
    """Return a resolved value as cdk-nag names it (`flattenCfnReference`)."""
    match value:
        case str():
            return value.replace("${", "<").replace("}", ">")
        case {"Fn::Join": [delimiter, operands]}:
            return str(delimiter).join(map(_flat, operands))
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{_flat(resource)}.{_flat(attribute)}>"
        case {"Ref": operand}:
            return f"<{_flat(operand)}>"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
