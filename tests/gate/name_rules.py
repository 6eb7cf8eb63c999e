"""Names that a template chooses: as long as they may be, of the characters they may have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tests.gate.rule import rule
from tests.gate.template import Template, text

_REFERENCE: Final = "AWSCloudFormation/latest/TemplateReference/"
_NAMES: Final = {
    "Lambda::Function": ("FunctionName", r"[a-zA-Z0-9_-]{1,64}"),
    "Logs::LogGroup": ("LogGroupName", r"[\w./#-]{1,512}"),
    "CloudWatch::Alarm": ("AlarmName", r"[^\x00-\x1f]{1,255}"),
    "CloudWatch::Dashboard": ("DashboardName", r"[a-zA-Z0-9_-]{1,255}"),
    "SQS::Queue": ("QueueName", r"[a-zA-Z0-9_-]{1,80}"),
    "Events::Rule": ("Name", r"[\w.-]{1,64}"),
    "IAM::Role": ("RoleName", r"[\w+=,.@-]{1,64}"),
    "IAM::Policy": ("PolicyName", r"[\w+=,.@-]{1,128}"),
    "DynamoDB::GlobalTable": ("TableName", r"[\w.-]{3,255}"),
    "S3::Bucket": ("BucketName", r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"),
}
_API_ID: Final = "a1b2c3d4e5"
"""As long as what a name of ours is made of: an API's id."""


@rule(f"{_REFERENCE}aws-properties-name.html")
def names_are_allowed(template: Template) -> Iterator[str]:
    """Names that are set; CloudFormation makes all others."""
    for kind, (name, pattern) in _NAMES.items():
        for resource in template.each(kind):
            if resource[name] is not None and not re.fullmatch(pattern, text(resource[name], _API_ID), re.ASCII):
                yield f"{resource.id}: {name} {text(resource[name], _API_ID)}"


@rule("IAM/latest/UserGuide/reference_iam-quotas.html")
def policies_fit(template: Template) -> Iterator[str]:
    """All inline policies of a role: 10,240 characters without white space."""
    sizes: dict[str, int] = {}
    for policy in template.each("IAM::Policy"):
        for role in policy["Roles"] or ():
            size = len(re.sub(r"\s", "", text(str(policy["PolicyDocument"]))))
            sizes[str(role)] = sizes.get(str(role), 0) + size
    yield from (f"{role}: policies of {size} characters" for role, size in sizes.items() if size > 10_240)


@rule("AWSCloudFormation/latest/UserGuide/cloudformation-limits.html")
def templates_fit(template: Template) -> Iterator[str]:
    """500 resources, 200 outputs, a description of 1,024 bytes."""
    if len(template.resources) > 500 or len(template.document.get("Outputs", {})) > 200:
        yield f"{len(template.resources)} resources, {len(template.document.get('Outputs', {}))} outputs"
    if len(str(template.document.get("Description", "")).encode()) > 1024:
        yield "too long a description"
