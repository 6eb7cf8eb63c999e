"""Deployed stacks are the synthesized ones: no difference afterwards, and nothing to do a second time."""

from __future__ import annotations

import pytest

from demo.platform.deployment import PROJECT, Deployment
from dynamodb_counters._dev import cdk

pytestmark = pytest.mark.e2e


@pytest.mark.night
def test_a_deployed_app_has_no_difference_and_a_second_deployment_changes_nothing(deployment: Deployment) -> None:
    said = cdk.run(deployment.emulator, PROJECT, ["diff", "--method", "template"])
    assert any("Number of stacks with differences: 0" in line for line in said)

    said = cdk.run(
        deployment.emulator, PROJECT, ["deploy", "--all", "--require-approval", "never", "--method", "direct"]
    )
    stacks = deployment.emulator.client("cloudformation").list_stacks()["StackSummaries"]
    assert sum("no changes" in line for line in said) == 6
    assert sum(stack["StackName"].startswith("Counters") for stack in stacks) == 6
