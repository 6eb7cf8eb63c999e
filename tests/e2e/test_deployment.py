"""Deployed stacks are the synthesized ones: no difference afterwards, and nothing to do a second time."""

from __future__ import annotations

import pytest

from demo.platform.deployment import APP, Deployment
from dynamodb_counters._dev import cdk

pytestmark = pytest.mark.e2e


@pytest.mark.night
def test_a_deployed_app_has_no_difference_and_a_second_deployment_changes_nothing(deployment: Deployment) -> None:
    said: list[str] = []
    cdk._run(deployment.emulator, APP, ["diff", "--method", "template"], said.append)
    assert any("Number of stacks with differences: 0" in line for line in said)

    said.clear()
    cdk.deploy(deployment.emulator, APP, progress=said.append)
    stacks = deployment.emulator.client("cloudformation").list_stacks()["StackSummaries"]
    assert sum("no changes" in line for line in said) == 6
    assert sum(stack["StackName"].startswith("Counters") for stack in stacks) == 6
