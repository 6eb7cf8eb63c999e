"""The smoke test's parts: it asks first, names what differs, and removes everything, whatever happens."""

# ruff: noqa: ARG002 - fakes take what is given to what they stand for
from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from demo.aws_smoke import __main__ as smoke
from demo.aws_smoke.account import Account, remove
from demo.terminal import Progress

NAME = "CountersSmoke-1"
OPTIONS = smoke.parse_options(["--yes", "--events", "10", "--patience", "1"])


def _missing(operation: str, code: str = "ValidationError") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": f"{NAME} does not exist"}}, operation)


@dataclass
class Cloud:
    """An account with one stack: every service's client at once."""

    resources: dict[str, str]
    stuck: bool = False
    exists: bool = True
    calls: list[str] = field(default_factory=list)
    objects: list[str] = field(default_factory=lambda: ["a", "b"])

    def describe_stacks(self, *, StackName: str) -> Any:  # noqa: N803
        if not self.exists:
            raise _missing("DescribeStacks")
        status = "DELETE_FAILED" if self.stuck and "stack" in self.calls else "CREATE_COMPLETE"
        return {"Stacks": [{"StackId": f"arn:{NAME}", "StackStatus": status}]}

    def delete_stack(self, *, StackName: str) -> None:  # noqa: N803
        self.calls.append("stack")
        self.exists = self.stuck

    def get_paginator(self, operation: str) -> Any:
        self.listing = operation
        return self

    def paginate(self, **_: str) -> Iterator[Any]:
        if self.listing == "list_object_versions":
            yield {"Versions": [{"Key": key, "VersionId": "null"} for key in self.objects]}
        else:
            found = [{"PhysicalResourceId": name, "ResourceType": kind} for name, kind in self.resources.items()]
            yield {"StackResourceSummaries": found}

    def delete_table(self, *, TableName: str) -> None:  # noqa: N803
        self.calls.append(TableName)

    def delete_queue(self, *, QueueUrl: str) -> None:  # noqa: N803
        raise _missing("DeleteQueue", "AWS.SimpleQueueService.NonExistentQueue")

    def delete_log_group(self, *, logGroupName: str) -> None:  # noqa: N803
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteLogGroup")

    def delete_object(self, *, Bucket: str, Key: str, VersionId: str) -> None:  # noqa: N803
        self.objects.remove(Key)

    def delete_bucket(self, *, Bucket: str) -> None:  # noqa: N803
        assert self.objects == []
        self.calls.append(Bucket)


KEPT = {"table": "AWS::DynamoDB::GlobalTable", "bucket": "AWS::S3::Bucket", "url": "AWS::SQS::Queue", "f": "AWS::X"}


def _account(monkeypatch: pytest.MonkeyPatch, cloud: Cloud) -> Account:
    monkeypatch.setattr("demo.aws_smoke.account._client", lambda *_: cloud)
    return Account("123456789012", "eu-central-1", "arn:aws:iam::123456789012:user/u", None)


def _removed(monkeypatch: pytest.MonkeyPatch, cloud: Cloud) -> list[str]:
    return remove(_account(monkeypatch, cloud), NAME, Progress(io.StringIO()), sleep=lambda _: None)


def test_retained_resources_are_removed_once_late_invocations_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud = Cloud(dict(KEPT))
    pause: Callable[[float], None] = lambda seconds: cloud.calls.append(f"{seconds:.0f} s")  # noqa: E731
    assert remove(_account(monkeypatch, cloud), NAME, Progress(io.StringIO()), pause) == []
    assert cloud.calls == ["stack", "10 s", "table", "bucket"]


def test_resources_that_cannot_be_removed_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    told = _removed(monkeypatch, Cloud({**KEPT, "logs": "AWS::Logs::LogGroup"}, stuck=True))
    assert [line.partition(":")[0] for line in told] == [f"stack {NAME}", "AWS"]
    assert "AccessDenied" in told[1]


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> tuple[Account, list[str]]:
    """An account in which nothing happens but what the list names."""
    happened: list[str] = []

    def removed(account: Account, name: str, progress: Progress) -> list[str]:
        happened.append("removed")
        return []

    monkeypatch.setattr(smoke, "remove", removed)
    return Account("123456789012", "eu-central-1", "arn:aws:iam::123456789012:user/u", None), happened


def test_it_says_what_it_will_do_and_asks(
    account: tuple[Account, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = smoke.parse_options([])
    assert smoke.run(account[0], asked, Progress(io.StringIO()), ask=lambda _: "no") == 1
    assert account[1] == []
    told = capsys.readouterr().err
    assert all(
        word in told for word in ("123456789012", "eu-central-1", "CountersSmoke-", "1,000 events", "some cents")
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143), RuntimeError("deployment failed")])
def test_everything_is_removed_whatever_happens(
    error: BaseException,
    account: tuple[Account, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails(account: Account, name: str) -> dict[str, str]:
        account_seen.append(name)
        raise error

    account_seen: list[str] = []
    monkeypatch.setattr(smoke, "deploy", fails)
    with pytest.raises(type(error)):
        smoke.run(account[0], OPTIONS, Progress(io.StringIO()))
    assert account[1] == ["removed"]
    assert f"differs: all checks are made: expected yes, found {type(error).__name__}" in capsys.readouterr().out
