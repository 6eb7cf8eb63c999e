"""Facts known only at synth: resolved properties, late values, checks of all that is declared, cdk-nag findings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import aws_cdk as cdk
import jsii
from constructs import Construct, IConstruct, IValidation

from dynamodb_counters.errors import InvalidArgumentError


def resolved_property(resource: cdk.CfnResource, name: str) -> Any:
    """Return a property by its camel-case name, or None."""
    # The resource's getter does not work: jsii returns an empty or broken copy of a property that CDK produces lazily.
    inspector = cdk.TreeInspector()
    # Every generated resource class is inspectable; their common base class does not declare it.
    cast(cdk.IInspectable, resource).inspect(inspector)
    return cdk.Stack.of(resource).resolve(inspector.attributes["aws:cdk:cloudformation:props"].get(name))


def late_text(produce: Callable[[], str | None]) -> str:
    """Return a token for the text that ``produce`` returns at synth."""
    return cdk.Token.as_string(late_value(produce))


def late_value(produce: Callable[[], Any]) -> Any:
    """Return a token for what ``produce`` returns at synth."""
    return cdk.Lazy.any(_Late(produce))


def check_at_synth(scope: Construct, find_problem: Callable[[], object]) -> None:
    """Fail synth with the problem that ``find_problem`` then returns or raises, if any."""
    scope.node.add_validation(_Check(find_problem))


@jsii.implements(cdk.IStableAnyProducer)
class _Late:
    def __init__(self, produce: Callable[[], Any]) -> None:
        self._produce = produce

    def produce(self) -> Any:
        return self._produce()


@jsii.implements(IValidation)
class _Check:
    def __init__(self, find_problem: Callable[[], object]) -> None:
        self._find_problem = find_problem

    def validate(self) -> list[str]:
        try:
            problem = self._find_problem()
        except InvalidArgumentError as error:
            return [str(error)]
        return [problem] if isinstance(problem, str) else []


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Acknowledge a finding of cdk-nag such as ``"APIG4"``; cdk-nag itself need not be installed."""
    finding = cdk.Acknowledgment(id=f"AwsSolutions::AwsSolutions-{rule}", reason=reason)
    cdk.Validations.of(construct).acknowledge(finding)


def acknowledge_resource(role: Construct, reason: str, arn: str) -> None:
    """Acknowledge that a role may do something with all resources that an ARN with a wildcard means."""

    def find() -> None:
        # Only at synth is it known how the role's stack refers to what is in another one.
        acknowledge(role, f"IAM5[Resource::{_flat(cdk.Stack.of(role).resolve(arn))}]", reason)

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
