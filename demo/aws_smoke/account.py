"""The account that the caller's credentials name: deploys a stack there, and removes it with all that it retains."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from counters_cli.emulator import QUIET
from demo.terminal import Progress

_PROJECT: Final = Path(__file__).resolve().parents[2]
_BOOTSTRAP: Final = "/cdk-bootstrap/hnb659fds/version"
_PAUSE_SECONDS: Final = 3.0
_MAX_SECONDS: Final = 900.0
_LATE_SECONDS: Final = 10.0
"""In which invocations end that were under way: one whose log group is gone creates it again."""
_GONE: Final = ("NotFound", "NonExistent", "NoSuch", "does not exist")


class AccountError(Exception):
    """Nothing can be deployed there, or the CDK CLI failed."""


@dataclass(frozen=True)
class Account:
    """An account in a region; `endpoint_url` is an emulator's."""

    number: str
    region: str
    caller: str
    endpoint_url: str | None

    @property
    def emulated(self) -> bool:
        return self.endpoint_url is not None

    def client(self, service: str) -> Any:
        return _client(service, self.region)

    def url(self, api_id: str) -> str:
        """Return where the default stage of an HTTP API answers."""
        if self.endpoint_url is not None:
            return f"{self.endpoint_url}/_aws/execute-api/{api_id}/$default"
        return str(self.client("apigatewayv2").get_api(ApiId=api_id)["ApiEndpoint"])

    def resources(self, stack: str) -> Iterator[tuple[str, str]]:
        """Yield what a stack has created: physical id and type."""
        try:
            for page in self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack):
                for resource in page["StackResourceSummaries"]:
                    if resource.get("PhysicalResourceId"):
                        yield resource["PhysicalResourceId"], resource["ResourceType"]
        except ClientError as error:
            # An emulator forgets a stack that is deleted.
            if "does not exist" not in str(error):
                raise

    def stack(self, name: str) -> dict[str, Any] | None:
        try:
            [stack] = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
        except ClientError as error:
            if "does not exist" not in str(error):
                raise
            return None
        return None if stack["StackStatus"] == "DELETE_COMPLETE" else dict(stack)


@cache
def _client(service: str, region: str) -> Any:
    return boto3.session.Session(region_name=region).client(service)  # type: ignore[call-overload]


def caller_account() -> Account:
    """Ask who the caller is; AccountError without credentials, or if the CDK has not been bootstrapped there."""
    session = boto3.session.Session()
    if session.region_name is None:
        raise AccountError("no region: set AWS_REGION, or choose a profile that has one")
    try:
        caller = _client("sts", session.region_name).get_caller_identity()
        _client("ssm", session.region_name).get_parameter(Name=_BOOTSTRAP)
    except (BotoCoreError, ClientError) as error:
        if "ParameterNotFound" in str(error):
            place = f"aws://{caller['Account']}/{session.region_name}"
            raise AccountError(f"the CDK is not bootstrapped: run `node_modules/.bin/cdk bootstrap {place}`") from None
        raise AccountError(str(error)) from error
    return Account(caller["Account"], session.region_name, caller["Arn"], os.environ.get("AWS_ENDPOINT_URL"))


def deploy(account: Account, name: str) -> dict[str, str]:
    """Deploy the stack with the pinned CDK CLI and the caller's credentials; return its outputs."""
    app = f"{shlex.quote(sys.executable)} -m demo.aws_smoke.stack {name}"
    place = {"AWS_REGION": account.region, "CDK_DEFAULT_ACCOUNT": account.number, "CDK_DEFAULT_REGION": account.region}
    with TemporaryDirectory(prefix="aws-smoke-") as directory:
        outputs = Path(directory, "outputs.json")
        command = [str(_PROJECT / "node_modules/.bin/cdk"), "deploy", name, "--app", app]
        command += ["--output", f"{directory}/out", "--outputs-file", str(outputs)]
        command += ["--require-approval", "never", "--method", "direct"]
        # A failed deployment stays for a look at its events until it is removed, moments later.
        command += ["--no-rollback", "--no-notices", "--ci", "--progress", "events"]
        if account.emulated:
            command += ["--context", "single_shard_stream=true"]
        environment = {**os.environ, **place, **QUIET}
        done = subprocess.run(
            command,
            cwd=_PROJECT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            last = (done.stdout + done.stderr).splitlines()[-40:]
            raise AccountError("\n".join([f"`cdk deploy` ended with status {done.returncode}. Last lines:", *last]))
        return dict(json.loads(outputs.read_text())[name])


def remove(account: Account, name: str, progress: Progress, sleep: Callable[[float], None] = time.sleep) -> list[str]:
    """Delete the stack, then what outlived it; return what is left nevertheless, and why."""
    stack = account.stack(name)
    if stack is None:
        return []
    # Its id still names the stack when it is deleted: a deployment that was interrupted may go on creating meanwhile.
    stack_id = stack["StackId"]
    before = dict(account.resources(stack_id))
    progress(f"deleting stack {name}")
    # By name: an emulator does not know the id.
    account.client("cloudformation").delete_stack(StackName=name)
    deadline = time.monotonic() + _MAX_SECONDS
    while (stack := account.stack(stack_id)) is not None and not stack["StackStatus"].endswith("_FAILED"):
        if time.monotonic() > deadline:
            break
        sleep(_PAUSE_SECONDS)
    sleep(_LATE_SECONDS)
    remains = [] if stack is None else [f"stack {name}: {stack['StackStatus']}"]
    for physical_id, kind in {**before, **dict(account.resources(stack_id))}.items():
        if (delete := _DELETE.get(kind)) is not None:
            try:
                delete(account, physical_id)
                progress(f"removed {physical_id}")
            except ClientError as error:
                if not any(word in str(error) for word in _GONE):
                    remains.append(f"{kind} {physical_id}: {error}")
    return remains


def _delete_bucket(account: Account, name: str) -> None:
    s3 = account.client("s3")
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
        for version in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            s3.delete_object(Bucket=name, Key=version["Key"], VersionId=version["VersionId"])
    s3.delete_bucket(Bucket=name)


_DELETE: Final[dict[str, Callable[[Account, str], None]]] = {
    "AWS::DynamoDB::GlobalTable": lambda account, name: account.client("dynamodb").delete_table(TableName=name),
    "AWS::SQS::Queue": lambda account, url: account.client("sqs").delete_queue(QueueUrl=url),
    "AWS::Logs::LogGroup": lambda account, name: account.client("logs").delete_log_group(logGroupName=name),
    "AWS::S3::Bucket": _delete_bucket,
}
