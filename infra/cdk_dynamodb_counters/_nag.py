"""Acknowledged findings of cdk-nag, each with its reason. Nothing here needs cdk-nag to be installed."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Validations
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
