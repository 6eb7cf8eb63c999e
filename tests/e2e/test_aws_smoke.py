"""The smoke test for AWS, against the emulator: it finds what it expects, and leaves nothing."""

from __future__ import annotations

import sys

import pytest

from counters_cli.emulator import Emulator, bootstrap
from tests.integration.waiting import execute
from tests.unit.infra.support import PROJECT

pytestmark = pytest.mark.e2e


@pytest.mark.night
def test_the_smoke_test_is_as_expected_and_leaves_nothing() -> None:
    with Emulator.start(max_seconds=600) as emulator:
        bootstrap(emulator)
        command = [sys.executable, "-m", "demo.aws_smoke", "--yes", "--patience", "120"]
        done = execute(command, cwd=PROJECT, env=emulator.environment())
        output = done.stdout + done.stderr
        assert done.returncode == 0, output
        assert ", 0 differ, " in done.stdout, output
        assert "as expected: views by page" in output
        assert "skipped: shard ids of the checkpoints: the emulator" in output
        assert emulator.client("dynamodb").list_tables()["TableNames"] == []
        assert emulator.client("sqs").list_queues().get("QueueUrls", []) == []
        assert emulator.client("logs").describe_log_groups()["logGroups"] == []
        assert emulator.client("lambda").list_functions()["Functions"] == []
        buckets = [bucket["Name"] for bucket in emulator.client("s3").list_buckets()["Buckets"]]
        assert [name for name in buckets if not name.startswith("cdk-")] == []
