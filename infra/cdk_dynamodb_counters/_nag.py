"""Acknowledged findings of cdk-nag, each with its reason. Nothing here needs cdk-nag to be installed."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, rule: str, reason: str, finding: str = "") -> None:
    """Acknowledge a finding of the AwsSolutions pack.

    Parameters
    ----------
    construct : IConstruct
        Where it is found, or above.
    rule : str
        Such as ``"IAM5"``.
    reason : str
        Why it is as it should be.
    finding : str, optional
        Which of the rule's findings. Default: the rule's only one.
    """
    identifier = f"AwsSolutions::AwsSolutions-{rule}" + (f"[{finding}]" if finding else "")
    Validations.of(construct).acknowledge(Acknowledgment(id=identifier, reason=reason))


def acknowledge_indexes(role: IConstruct, table_arn: str) -> None:
    """Acknowledge that who may read a table may read its indexes, where it has some."""
    finding = resource_finding(role, f"{table_arn}/index/*")
    acknowledge(role, "IAM5", "The indexes of this one table.", finding)


def acknowledge_key(role: IConstruct) -> None:
    """Acknowledge that who may encrypt with a key may do so in every way."""
    for action in ("kms:GenerateDataKey*", "kms:ReEncrypt*"):
        acknowledge(role, "IAM5", "Variants of one action, on one key only.", f"Action::{action}")


def resource_finding(scope: IConstruct, arn: str) -> str:
    """Name a resource as cdk-nag does in its findings."""
    return "Resource::" + _flat(Stack.of(scope).resolve(arn))


def _flat(value: object) -> str:
    """Write a resolved ARN as cdk-nag does in its findings."""
    if isinstance(value, dict):
        [(function, operand)] = value.items()
        if function == "Fn::Join":
            return "".join(map(_flat, operand[1]))
        return "<" + (".".join(operand) if isinstance(operand, list) else str(operand)) + ">"
    return str(value)
