"""Permissions of a role, and those that AWS's services need: by kind of resource, so that templates compare."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from tests.gate.calls import Permission
from tests.gate.template import Resource, Template, references, text

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
_KEY_ACTIONS: Final = "kms:"
_ENCRYPTED: Final = ("AWS::DynamoDB::GlobalTable", "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue")


def kind(template: Template, resource: Resource) -> str:
    """Kind of a resource: a table, a queue, a queue of dead letters, ..."""
    if resource.type == "AWS::SQS::Queue":
        dead = [(queue["RedrivePolicy"] or {}).get("deadLetterTargetArn") for queue in template.each("SQS::Queue")]
        return "dead letters" if resource.id in references(dead) else "queue"
    return _KINDS.get(resource.type, resource.id)


def allowed(template: Template, function: Resource) -> set[Permission]:
    """Permissions by the policies of a function's role, but for keys."""
    found = {(one.action, named(template, one.resource)) for one in template.allowed(function["Role"])}
    return {(action, resource) for action, resource in found if not action.startswith(_KEY_ACTIONS)}


def named(template: Template, resource: Any) -> str:
    if isinstance(resource, str):
        return resource
    parts = resource["Fn::Join"][1] if "Fn::Join" in resource else [resource]
    found = template.resources.get(next(iter(references(parts[0])), ""))
    if found is None:
        return _ELSEWHERE.get(text(resource, "?").rpartition(":")[2], text(resource, "?"))
    stream = "/stream" if "StreamArn" in json.dumps(parts[0]) else ""
    return kind(template, found) + stream + "".join(parts[1:])


def of_services(template: Template, function: Resource) -> Iterator[Permission]:
    """Permissions that Lambda itself uses of a function's role.

    Logs and traces: https://docs.aws.amazon.com/lambda/latest/dg/lambda-intro-execution-role.html
    Streams: https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
    Queues: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
    Destinations: https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
    Networks: https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
    """
    yield from (("logs:CreateLogStream", "log group"), ("logs:PutLogEvents", "log group"))
    if (function["TracingConfig"] or {}).get("Mode") == "Active":
        yield from (("xray:PutTelemetryRecords", "*"), ("xray:PutTraceSegments", "*"))
    if function["VpcConfig"]:
        describes = ("DescribeNetworkInterfaces", "DescribeSubnets")
        interfaces = ("CreateNetworkInterface", "DeleteNetworkInterface")
        addresses = ("AssignPrivateIpAddresses", "UnassignPrivateIpAddresses")
        yield from ((f"ec2:{action}", "*") for action in describes)
        yield from ((f"ec2:{action}", "network") for action in (*interfaces, *addresses))
    for mapping, one in template.mappings("stream"):
        if one is function:
            stream = named(template, mapping["EventSourceArn"])
            reads = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
            yield from ((f"dynamodb:{action}", stream) for action in reads)
            yield from (("s3:ListBucket", "bucket"), ("s3:PutObject", "bucket/*"))
    for _, one in template.mappings("queue"):
        if one is function:
            polls = ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
            yield from ((f"sqs:{action}", "queue") for action in polls)


def unused(granted: set[Permission], needed: set[Permission]) -> set[Permission]:
    return {one for one in granted if not any(_covers(one, need) for need in needed)}


def denied(granted: set[Permission], needed: set[Permission]) -> set[Permission]:
    return {need for need in needed if not any(_covers(one, need) for one in granted)}


def _covers(granted: Permission, need: Permission) -> bool:
    return granted[0] == need[0] and fnmatchcase(need[1], granted[1])


def keys(template: Template, function: Resource) -> tuple[set[str], set[str]]:
    """The keys that a function's role may use, and those of what it touches."""
    policies = template.allowed(function["Role"])
    usable = {name for one in policies if one.action.startswith(_KEY_ACTIONS) for name in references(one.resource)}
    touched = {name for one in policies for name in references(one.resource)} & {*template.resources}
    stored = [template.resources[name] for name in touched]
    mentioned = references(function["KmsKeyArn"]).union(
        *(references(one.properties) for one in stored if one.type in _ENCRYPTED)
    )
    return usable, {one.id for one in template.each("KMS::Key") if one.id in mentioned}
