"""What is deployed is what is synthesized: no difference afterwards, and nothing to do a second time."""

from __future__ import annotations

import pytest

from demo.platform import cdk
from demo.platform.emulator import Emulator

pytestmark = pytest.mark.e2e

CONTEXT = {"single_shard_stream": "true"}


def test_a_deployed_app_has_no_difference_and_a_second_deployment_changes_nothing() -> None:
    with Emulator.start(max_seconds=300) as emulator:
        cdk.bootstrap(emulator)
        cdk.deploy(emulator, context=CONTEXT)

        assert cdk.diff(emulator, context=CONTEXT) == ""

        said: list[str] = []
        cdk.deploy(emulator, context=CONTEXT, progress=said.append)
        assert sum("no changes" in line for line in said) == len(stacks(emulator))


def stacks(emulator: Emulator) -> list[str]:
    """Name the deployed stacks of the app."""
    found = emulator.client("cloudformation").list_stacks()["StackSummaries"]
    return [stack["StackName"] for stack in found if stack["StackName"].startswith("Counters")]
