"""An ingest that is renamed leaves no event behind: the three steps of its page, followed."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from aws_cdk import Stack
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer

from cdk_dynamodb_counters import DedupCounterTable, EventIngest
from simulation.queue.sqs import Queue
from tests.unit.infra.support import PROJECT, VIEW, actions, build, each, statements, synthesized
from tests.unit.queue.world import World, view

_PAGE = PROJECT / "docs" / "constructs" / "event-ingest.md"
OLD = "arn:aws:sqs:us-east-1:123456789012:Blog-IngestQueue"


def test_the_queues_of_an_ingest_that_is_gone_stay_with_an_alarm_each(stack: Stack) -> None:
    build(EventIngest, stack)
    resources = synthesized(stack).to_json()["Resources"]
    kept = {name for name, one in resources.items() if one.get("DeletionPolicy") == "Retain"}
    queues = {name for name, one in resources.items() if one["Type"] == "AWS::SQS::Queue"}
    assert queues <= kept
    watched = set()
    for alarm in (resources[name] for name in kept if resources[name]["Type"] == "AWS::CloudWatch::Alarm"):
        [dimension] = alarm["Properties"]["Dimensions"]
        queue = resources[dimension["Value"]["Fn::GetAtt"][0]]["Properties"]
        watched.add((alarm["Properties"]["MetricName"], "RedrivePolicy" in queue))
    assert watched == {("ApproximateAgeOfOldestMessage", True), ("ApproximateNumberOfMessagesVisible", False)}


def test_step_1_lets_the_new_consumer_read_the_old_queue(stack: Stack) -> None:
    [code] = re.findall(r"(?ms)^1\. .*?```python\n(.*?)```", _PAGE.read_text().partition("## Renaming and moving")[2])
    counters = DedupCounterTable(stack, "Counters")
    names: dict[str, Any] = {"self": stack, "counters": counters, "VIEW": VIEW}
    exec(textwrap.dedent(code), names | {"EventIngest": EventIngest, "HttpIamAuthorizer": HttpIamAuthorizer})
    template = synthesized(stack)
    new, old = sorted(each(template, "AWS::Lambda::EventSourceMapping"), key=lambda one: one["EventSourceArn"] == OLD)
    assert old["EventSourceArn"] == OLD
    for name in ("FunctionName", "FunctionResponseTypes"):
        assert old[name] == new[name]
    allowed = {action for one in statements(template) if one["Resource"] == OLD for action in actions(one)}
    assert {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"} <= allowed


def test_step_2_empties_the_old_queue_into_the_table_and_the_new_queues() -> None:
    world = World()
    old, new = Queue(world.clock), world.queue
    world.queue = old
    for message in (view("/a"), view("/b"), {"url": "/c"}):
        world.post(message)
    world.deliver()
    world.queue = new
    world.post(view("/a"))
    world.deliver()
    assert old.receive(10) == []
    assert world.urls() == ["/a", "/b"]
    assert len(world.dead.receive(10)) == 1
