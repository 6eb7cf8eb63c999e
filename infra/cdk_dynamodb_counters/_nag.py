"""Acknowledged cdk-nag findings, each with a reason; cdk-nag itself need not be installed."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, rule: str, reason: str, finding: str = "") -> None:
    """Acknowledge an AwsSolutions rule such as ``"IAM5"``; ``finding`` selects one of several findings of the rule."""
    identifier = f"AwsSolutions::AwsSolutions-{rule}" + (f"[{finding}]" if finding else "")
    Validations.of(construct).acknowledge(Acknowledgment(id=identifier, reason=reason))


def acknowledge_key(role: IConstruct) -> None:
    for action in ("kms:GenerateDataKey*", "kms:ReEncrypt*"):
        acknowledge(role, "IAM5", "Variants of one action, on one key.", f"Action::{action}")


def resource_finding(scope: IConstruct, arn: str) -> str:
    """Return the name of cdk-nag's finding about a resource."""
    return "Resource::" + _flat(Stack.of(scope).resolve(arn))


def _flat(value: object) -> str:
    if isinstance(value, dict):
        [(function, operand)] = value.items()
        if function == "Fn::Join":
            return "".join(map(_flat, operand[1]))
        return "<" + (".".join(operand) if isinstance(operand, list) else str(operand)) + ">"
    return str(value)
