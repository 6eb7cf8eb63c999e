"""Events of completed deployments: when they come, and whether those of nested stacks do."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from demo.aws_smoke.deployed import Deployed
from demo.aws_smoke.questions.question import Answer

_SECONDS: Final = 120.0
"""An event comes within seconds, or it does not."""

_NO_RULES: Final = "sends no events of CloudFormation"


def takeover(deployed: Deployed) -> Answer:
    """Wait until the aggregator logs its takeover, before anything is written that could invoke it, too."""
    deployed.not_emulated(_NO_RULES)
    group = deployed.outputs["AggregatorLogs"]
    taken = deployed.until(lambda: [at for at, line in deployed.logged(group) if "takes over" in line], bool, _SECONDS)
    if not taken:
        return Answer(f"no takeover within {_SECONDS:g} s", as_assumed=False)
    events = deployed.account.client("cloudformation").describe_stack_events(StackName=deployed.stack)["StackEvents"]
    [completed] = [
        event["Timestamp"].timestamp()
        for event in events
        if event["LogicalResourceId"] == deployed.stack and event["ResourceStatus"] == "CREATE_COMPLETE"
    ]
    return Answer(f"{min(taken) - completed:.1f} s after the stack is complete", as_assumed=True)


def nested(deployed: Deployed) -> Answer:
    """Look for the event of the probe's nested stack, which a rule of it hands to a function."""
    deployed.not_emulated(_NO_RULES)

    def read() -> list[float]:
        return [
            at - datetime.fromisoformat(event["time"]).timestamp()
            for at, event in deployed.printed()
            if event.get("source") == "aws.cloudformation"
        ]

    delays = deployed.until(read, bool, _SECONDS)
    if not delays:
        return Answer(f"no event of the nested stack within {_SECONDS:g} s", as_assumed=False)
    return Answer(f"its event came {delays[0]:.1f} s after its time", as_assumed=True)
