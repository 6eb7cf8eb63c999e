"""Acknowledged cdk-nag findings, each with a reason; cdk-nag itself need not be installed."""

from __future__ import annotations

import json
from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import Construct, IConstruct

from cdk_dynamodb_counters._synth import check_at_synth


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
