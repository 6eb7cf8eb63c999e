"""Removes a stack with everything it created, what it retains included."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from demo.aws_smoke.account import Account
from demo.terminal import Progress

_PAUSE_SECONDS: Final = 3.0
_MAX_SECONDS: Final = 900.0
_LATE_SECONDS: Final = 10.0
"""In which invocations end that were under way: one whose log group is gone creates it again."""
_GONE: Final = ("NotFound", "NonExistent", "NoSuch", "does not exist")

Resources = Mapping[str, str]
"""Types by physical id."""


def remove(account: Account, name: str, progress: Progress, sleep: Callable[[float], None] = time.sleep) -> list[str]:
    """Delete the stack, then what outlived it; return what is left nevertheless, and why."""
    cloudformation = account.client("cloudformation")
    stack = _stack(cloudformation, name)
    if stack is None:
        return []
    # Its id still names the stack when it is deleted: a deployment that was interrupted may go on creating meanwhile.
    stack_id = stack["StackId"]
    before = dict(created(cloudformation, stack_id))
    progress(f"deleting stack {name}")
    # By name: an emulator does not know the id.
    cloudformation.delete_stack(StackName=name)
    deadline = time.monotonic() + _MAX_SECONDS
    while (stack := _stack(cloudformation, stack_id)) is not None and not stack["StackStatus"].endswith("_FAILED"):
        if time.monotonic() > deadline:
            break
        sleep(_PAUSE_SECONDS)
    sleep(_LATE_SECONDS)
    left = [] if stack is None else [f"stack {name}: {stack['StackStatus']}"]
    for physical_id, kind in {**before, **dict(created(cloudformation, stack_id))}.items():
        if (delete := _DELETE.get(kind)) is not None:
            try:
                delete(account, physical_id)
                progress(f"removed {physical_id}")
            except ClientError as error:
                if not any(word in str(error) for word in _GONE):
                    left.append(f"{kind} {physical_id}: {error}")
    return left


def created(cloudformation: Any, stack: str) -> Iterator[tuple[str, str]]:
    try:
        for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack):
            for resource in page["StackResourceSummaries"]:
                if resource.get("PhysicalResourceId"):
                    yield resource["PhysicalResourceId"], resource["ResourceType"]
    except ClientError as error:
        # An emulator forgets a stack that is deleted.
        if "does not exist" not in str(error):
            raise


def _stack(cloudformation: Any, name: str) -> dict[str, Any] | None:
    try:
        [stack] = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if "does not exist" not in str(error):
            raise
        return None
    found: dict[str, Any] = stack
    return None if found["StackStatus"] == "DELETE_COMPLETE" else found


def _delete_bucket(account: Account, name: str) -> None:
    s3 = account.client("s3")
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
        for one in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            s3.delete_object(Bucket=name, Key=one["Key"], VersionId=one["VersionId"])
    s3.delete_bucket(Bucket=name)


_DELETE: Final[dict[str, Callable[[Account, str], None]]] = {
    "AWS::DynamoDB::GlobalTable": lambda account, name: account.client("dynamodb").delete_table(TableName=name),
    "AWS::SQS::Queue": lambda account, url: account.client("sqs").delete_queue(QueueUrl=url),
    "AWS::Logs::LogGroup": lambda account, name: account.client("logs").delete_log_group(logGroupName=name),
    "AWS::S3::Bucket": _delete_bucket,
}
