"""The smoke test's parts: it asks first, names what differs, and removes everything, whatever happens."""

from __future__ import annotations

import io
import json
from pathlib import Path
from unittest.mock import MagicMock, Mock, call

import pytest
from botocore.exceptions import ClientError

from demo.aws_smoke import __main__ as smoke
from demo.aws_smoke.account import Account, remove
from demo.aws_smoke.checks import Checks
from demo.terminal import Progress

_AGGREGATOR = Path(__file__).parents[2] / "snapshots" / "aggregator_minimal.json"
NAME = "CountersSmoke-1"
ACCOUNT = Account("123456789012", "eu-central-1", "arn:aws:iam::123456789012:user/u", None)
OPTIONS = smoke.parse_options(["--yes", "--events", "10", "--patience", "1"])


def _refused(operation: str, code: str = "ValidationError", message: str = f"{NAME} does not exist") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


def _cloud(resources: dict[str, str], status: str | None = None) -> MagicMock:
    """Every service's client of an account: its stack is gone once it is deleted, or stays with a status."""
    created = {"Stacks": [{"StackId": f"arn:{NAME}", "StackStatus": "CREATE_COMPLETE"}]}
    deleted = {"Stacks": [{"StackId": f"arn:{NAME}", "StackStatus": status}]}
    summaries = [{"PhysicalResourceId": name, "ResourceType": kind} for name, kind in resources.items()]
    pages = {
        "list_object_versions": [{"Versions": [{"Key": key, "VersionId": "null"} for key in "ab"]}],
        "list_stack_resources": [{"StackResourceSummaries": summaries}],
    }
    return MagicMock(
        **{
            "describe_stacks.side_effect": [created, _refused("DescribeStacks") if status is None else deleted],
            "get_paginator": lambda operation: MagicMock(**{"paginate.return_value": pages[operation]}),
            "delete_queue.side_effect": _refused("DeleteQueue", "AWS.SimpleQueueService.NonExistentQueue"),
            "delete_log_group.side_effect": _refused("DeleteLogGroup", "AccessDenied", "no"),
        }
    )


KEPT = {"table": "AWS::DynamoDB::GlobalTable", "bucket": "AWS::S3::Bucket", "url": "AWS::SQS::Queue", "f": "AWS::X"}


def _removed(monkeypatch: pytest.MonkeyPatch, cloud: MagicMock) -> list[str]:
    monkeypatch.setattr("demo.aws_smoke.account._client", lambda *_: cloud)
    return remove(ACCOUNT, NAME, Progress(io.StringIO()), cloud.sleep)


def test_retained_resources_are_removed_once_late_invocations_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = _cloud(KEPT)
    assert _removed(monkeypatch, cloud) == []
    changed = [request for request in cloud.method_calls if request[0].startswith(("delete", "sleep"))]
    assert changed == [
        call.delete_stack(StackName=NAME),
        call.sleep(10),
        call.delete_table(TableName="table"),
        *(call.delete_object(Bucket="bucket", Key=key, VersionId="null") for key in "ab"),
        call.delete_bucket(Bucket="bucket"),
        call.delete_queue(QueueUrl="url"),
    ]


def test_resources_that_cannot_be_removed_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = _removed(monkeypatch, _cloud({**KEPT, "logs": "AWS::Logs::LogGroup"}, "DELETE_FAILED"))
    assert [line.partition(":")[0] for line in lines] == [f"stack {NAME}", "AWS"]
    assert "AccessDenied" in lines[1]


@pytest.fixture
def removal(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Stand for what removes stacks: none is removed."""
    removal = Mock(return_value=[])
    monkeypatch.setattr(smoke, "remove", removal)
    return removal


def test_it_says_what_it_will_do_and_asks(removal: Mock, capsys: pytest.CaptureFixture[str]) -> None:
    assert smoke.run(ACCOUNT, smoke.parse_options([]), Progress(io.StringIO()), ask=lambda _: "no") == 1
    removal.assert_not_called()
    printed = capsys.readouterr().err
    for word in ("123456789012", "eu-central-1", "CountersSmoke-", "1,000 events", "some cents"):
        assert word in printed


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143), RuntimeError("deployment failed")])
def test_everything_is_removed_whatever_happens(
    error: BaseException, removal: Mock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy = Mock(side_effect=error)
    monkeypatch.setattr(smoke, "deploy", deploy)
    with pytest.raises(type(error)):
        smoke.run(ACCOUNT, OPTIONS, Progress(io.StringIO()))
    assert [removed.args[1] for removed in removal.call_args_list] == [deploy.call_args.args[1]]
    assert f"differs: all checks are made: expected yes, found {type(error).__name__}" in capsys.readouterr().out


@pytest.mark.parametrize("is_accepted", [True, False])
def test_it_asks_whether_a_stream_s_batches_need_a_window(monkeypatch: pytest.MonkeyPatch, is_accepted: bool) -> None:
    cloud = _cloud({"m": "AWS::Lambda::EventSourceMapping"})
    cloud.get_event_source_mapping.return_value = {"EventSourceArn": "arn:aws:dynamodb:eu-central-1:1:table/t/stream/s"}
    cloud.exceptions.InvalidParameterValueException = ClientError
    cloud.update_event_source_mapping.side_effect = None if is_accepted else _refused("UpdateEventSourceMapping")
    monkeypatch.setattr("demo.aws_smoke.account._client", lambda *_: cloud)
    checks = Checks(ACCOUNT, NAME, Progress(io.StringIO()), 1.0)
    checks._window()
    assert cloud.update_event_source_mapping.call_args == call(
        UUID="m", BatchSize=100, MaximumBatchingWindowInSeconds=0
    )
    assert len(checks.differences) == is_accepted


def test_an_alarm_on_silence_that_has_not_ended_since_the_deployment_is_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resources = json.loads(_AGGREGATOR.read_text())["Resources"].items()
    silent = [name for name, spec in resources if spec.get("Properties", {}).get("TreatMissingData") == "breaching"]
    assert len(silent) == 2
    cloud = _cloud(dict.fromkeys(silent, "AWS::CloudWatch::Alarm"))
    states = [{"AlarmName": name, "StateValue": "ALARM"} for name in silent]
    listed = cloud.get_paginator("list_stack_resources")
    described = MagicMock(**{"paginate.return_value": [{"MetricAlarms": states}]})
    cloud.get_paginator = lambda operation: described if operation == "describe_alarms" else listed
    monkeypatch.setattr("demo.aws_smoke.account._client", lambda *_: cloud)
    checks = Checks(ACCOUNT, NAME, Progress(io.StringIO()), 1.0)
    checks._alarms()
    assert checks.differences == []
