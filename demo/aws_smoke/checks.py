"""Checks, one function each: all talk to what is deployed, and note what they expected and found."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from demo.aws_smoke.deployed import Deployed
from demo.aws_smoke.removal import created
from demo.aws_smoke.traffic import Traffic
from dynamodb_counters import Counters
from examples.blog.declarations import VIEWS

_EVENTS_PER_REQUEST: Final = 100
_SPOILED: Final = "/smoke/spoiled"
_MALFORMED: Final = {"url": "/smoke/malformed", "time": "2026-13-45T99:00:00Z", "clientId": "c"}


def refusals(deployed: Deployed) -> None:
    """Unsigned requests are refused with 403, and bodies that are no event with 400."""
    if deployed.account.emulated:
        deployed.expectations.skip("an unsigned request", "the emulator checks no signatures")
    else:
        deployed.expectations.check("an unsigned request", 403, deployed.api.unsigned("/v1/aggregates/site"))
    status, problem = deployed.api.post("/events", [_MALFORMED])
    deployed.expectations.check("a malformed event in validated mode", 400, status)
    deployed.expectations.check("its reason names the attribute", True, "time" in json.dumps(problem))


def counts(deployed: Deployed, traffic: Traffic) -> None:
    """Everything sent is counted once: by page, in all, and in the last 24 hours."""
    expectations = deployed.expectations
    events = list(traffic.sent)
    starts = range(0, len(events), _EVENTS_PER_REQUEST)
    answers = {deployed.api.post("/events", events[start : start + _EVENTS_PER_REQUEST])[0] for start in starts}
    expectations.check("events are taken", {202}, answers)
    total = traffic.by_url.total()
    expectations.progress(f"sent {len(events)} events, {total} of them different; waiting until they are counted")
    deployed.settle("views of all pages", total, deployed.site)
    urls = sorted(traffic.by_url)
    expected = {url: traffic.by_url[url] for url in urls}
    deployed.settle("views by page", expected, lambda: _by_url(deployed, urls))
    deployed.settle("views in 24 hours", traffic.by_url[urls[0]], lambda: _in_a_day(deployed, urls[0]))


def _by_url(deployed: Deployed, urls: Sequence[str]) -> object:
    groups = {"groups": [{"aggregate": "views", "values": {"url": url}} for url in urls]}
    status, found = deployed.api.post("/v1/batch", groups)
    return (
        {one["values"]["url"]: one["measures"]["views"] for one in found["groups"]}
        if status == HTTPStatus.OK
        else found
    )


def _in_a_day(deployed: Deployed, url: str) -> object:
    status, found = deployed.api.get("/v1/windows/views_24h", url=url, last="24h")
    return found["count"] if status == HTTPStatus.OK else found


def shards(deployed: Deployed) -> None:
    """Batches name their shard: checkpoint items are of shards that the stream has."""
    if deployed.account.emulated:
        deployed.expectations.skip("shard ids of the checkpoints", "the emulator does not name a batch's shard")
        return
    dynamodb, table = deployed.account.client("dynamodb"), deployed.outputs["TableName"]
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=table,
        FilterExpression="begins_with(pk, :checkpoint) AND attribute_exists(shard)",
        ExpressionAttributeValues={":checkpoint": {"S": "CHECKPOINT#"}},
    )
    noted = {item["shard"]["S"] for page in pages for item in page["Items"]}
    stream = dynamodb.describe_table(TableName=table)["Table"]["LatestStreamArn"]
    streams = deployed.account.client("dynamodbstreams")
    known = {one["ShardId"] for one in streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"]}
    deployed.expectations.check("there are checkpoints", True, bool(noted))
    deployed.expectations.check("checkpoints of shards that the stream does not have", set(), noted - known)


def quarantine(deployed: Deployed) -> None:
    """A group that was spoiled: its views wait in quarantine; repaired and redriven, they count once."""
    expectations, dynamodb = deployed.expectations, deployed.account.client("dynamodb")
    counters = Counters(deployed.outputs["TableName"], client=dynamodb)
    key = {"pk": {"S": f"URL#{_SPOILED}"}, "sk": {"S": "STATISTICS"}}
    table = {"TableName": deployed.outputs["TableName"], "Key": key, "ExpressionAttributeNames": {"#views": "views"}}
    dynamodb.update_item(
        **table, UpdateExpression="SET #views = :text", ExpressionAttributeValues={":text": {"S": "spoiled"}}
    )
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
    deployed.api.post("/events", {"url": _SPOILED, "time": now, "clientId": "c"})
    deployed.eventually(lambda: any(counters.quarantined()))
    waiting = list(counters.quarantined())
    expectations.check("views of a spoiled group in quarantine", 1, len(waiting))
    dynamodb.update_item(**table, UpdateExpression="REMOVE #views")
    for entry in waiting:
        expectations.check("an entry is redriven", True, counters.redrive(entry))

    deployed.settle(
        "views of the repaired group",
        1,
        lambda: counters.get(VIEWS, url=_SPOILED, consistent=True).measures["views"],
    )
    expectations.check("what waits after the redrive", 0, len(list(counters.quarantined())))


def dead_letter(deployed: Deployed) -> None:
    """In direct mode no receiver validates an event: the malformed one ends in the dead-letter queue."""
    what = "the malformed event of direct mode is a dead letter"
    status, _ = deployed.api.post("/direct", "no JSON")
    if deployed.account.emulated and status != HTTPStatus.ACCEPTED:
        deployed.expectations.skip(what, f"the emulator has no direct integration with a queue (status {status})")
        return
    deployed.expectations.check("direct mode takes anything", 202, status)
    queue = {"QueueUrl": deployed.outputs["DeadLetterQueue"], "AttributeNames": ["ApproximateNumberOfMessages"]}

    def letters() -> int:
        found = deployed.account.client("sqs").get_queue_attributes(**queue)
        return int(found["Attributes"]["ApproximateNumberOfMessages"])

    arrived = deployed.eventually(lambda: letters() >= 1, 10.0 if deployed.account.emulated else None)
    if deployed.account.emulated and not arrived:
        deployed.expectations.skip(what, "the emulator's CloudFormation leaves the redrive policy out")
        return
    deployed.expectations.check(what, 1, letters())


def alarms(deployed: Deployed) -> None:
    """Every alarm of the template exists, and none is on that nothing here has provoked."""
    cloudformation = deployed.account.client("cloudformation")
    kinds = dict(created(cloudformation, deployed.stack))
    expected = {name for name, kind in kinds.items() if kind == "AWS::CloudWatch::Alarm"}
    pages = deployed.account.client("cloudwatch").get_paginator("describe_alarms").paginate(AlarmTypes=["MetricAlarm"])
    found: dict[str, dict[str, Any]] = {
        alarm["AlarmName"]: alarm for page in pages for alarm in page["MetricAlarms"] if alarm["AlarmName"] in expected
    }
    deployed.expectations.check("alarms of the template that do not exist", set(), expected - {*found})
    for name, alarm in sorted(found.items()):
        deployed.expectations.progress(f"alarm {name}: {alarm['StateValue']}")
    if deployed.account.emulated:
        deployed.expectations.skip("states of alarms", "the emulator does not evaluate them")
        return
    provoked = ("Uncounted", "DeadLetters", "Polling", "Watch", "Coalescing", "Rejected", "Waiting")
    on = [name for name, alarm in found.items() if alarm["StateValue"] == "ALARM"]
    deployed.expectations.check(
        "alarms that nothing has provoked", [], [name for name in on if not any(part in name for part in provoked)]
    )
