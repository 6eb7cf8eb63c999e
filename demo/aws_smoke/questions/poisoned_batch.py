"""A batch of a stream with a record that always fails: how Lambda bisects it, and how it hands over what is left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from demo.aws_smoke.deployed import Deployed
from demo.aws_smoke.probe_function import POISON
from demo.aws_smoke.questions.metrics import metric
from demo.aws_smoke.questions.question import Answer
from dynamodb_counters._quarantine.waiting import PREFIX
from dynamodb_counters._recovery.given_up import read_given_up
from dynamodb_counters.errors import GivenUpError

_KEYS: Final = ("a", "b", "c", "d", POISON, "e", "f", "g")


def _write(deployed: Deployed) -> None:
    """Write the batch, one by one: in order, and faster than the mapping's window."""
    client, table = deployed.account.client("dynamodb"), deployed.outputs["ProbeTable"]
    for key in _KEYS:
        # An emulator would fail for ever with it.
        if key == POISON and deployed.account.emulated:
            continue
        # A write that changes nothing would write no record.
        values = {":one": {"N": "1"}}
        item = {"pk": {"S": "batch"}, "sk": {"S": key}}
        client.update_item(TableName=table, Key=item, UpdateExpression="ADD n :one", ExpressionAttributeValues=values)


def _invocations(deployed: Deployed) -> list[dict[str, Any]]:
    """Invocations by the stream: its records have keys, and the last one of a window has none."""
    events = [event for _, event in deployed.printed()]
    return [event for event in events if "isFinalInvokeForWindow" in event or _keys(event)]


def _keys(event: Mapping[str, Any]) -> list[str]:
    return [record["key"] for record in event["Records"] if "key" in record]


def handed_over(deployed: Deployed) -> Answer:
    """Write the batch, and read the object in the bucket with the reader of `counters bucket redrive`."""
    _write(deployed)
    if not deployed.until(lambda: _invocations(deployed), bool):
        return Answer("the batch did not arrive", as_assumed=False)
    deployed.not_emulated("hands over no batch of a stream")
    s3, bucket = deployed.account.client("s3"), deployed.outputs["ProbeBucket"]
    found = deployed.until(lambda: s3.list_objects_v2(Bucket=bucket).get("Contents", []), bool)
    if not found:
        return Answer("no object", as_assumed=False)
    return handed_over_as(found[0]["Key"], s3.get_object(Bucket=bucket, Key=found[0]["Key"])["Body"].read())


def handed_over_as(key: str, body: bytes) -> Answer:
    fields = ", ".join(f"`{name}`" for name in sorted(json.loads(body)))
    try:
        given_up = read_given_up(body)
    except GivenUpError as error:
        return Answer(f"an object with {fields}: {error}", as_assumed=False)
    below = "/".join(key.split("/")[:2]) + "/"
    text = f"below `{below}`, with {fields}; {len(given_up.records)} records of a shard can be read"
    return Answer(text, below == PREFIX and given_up.at > 0)


def bisected(deployed: Deployed) -> Answer:
    """Read the invocations of that batch up to the last one of their window."""
    deployed.not_emulated("names no shard and no window, and does not bisect")

    def ended(calls: Iterable[Mapping[str, Any]]) -> bool:
        return any(call.get("isFinalInvokeForWindow") for call in calls)

    return bisected_into(deployed.until(lambda: _invocations(deployed), ended))


def bisected_into(calls: Iterable[Mapping[str, Any]]) -> Answer:
    """Describe batches by their sizes, and whether each was given the state of the last one that had succeeded."""
    sizes, last, named, kept, finals = [], None, True, True, 0
    window: Any = None
    for call in calls:
        named &= bool(call.get("shardId") and call.get("window"))
        if call.get("window") != window:
            window, last = call.get("window"), None
        kept &= call.get("state", {}).get("last") == last
        keys = _keys(call)
        if POISON not in keys and keys:
            last = call["Records"][-1]["sequence"]
        if keys:
            sizes.append(f"{len(keys)}{' (failed)' if POISON in keys else ''}")
        finals += bool(call.get("isFinalInvokeForWindow"))
    text = f"batches of {', '.join(sizes)}; each named shard and window: {named}; each was given the state of the last"
    text += f" one of its window that had succeeded: {kept}; last invocations of windows: {finals}"
    return Answer(text, named and kept and finals > 0)


def undelivered(deployed: Deployed) -> Answer:
    """Forbid the bucket to take more, write the batch again, and look for the metric."""
    deployed.not_emulated("hands over no batch of a stream")
    bucket = deployed.outputs["ProbeBucket"]
    arn = f"arn:{deployed.account.caller.split(':')[1]}:s3:::{bucket}/*"
    statement = {"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Resource": arn}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    deployed.account.client("s3").put_bucket_policy(Bucket=bucket, Policy=policy)
    _write(deployed)
    dimensions = {"FunctionName": deployed.outputs["ProbeStreamed"]}
    failures = deployed.until(lambda: metric(deployed, "AWS/Lambda", "DestinationDeliveryFailures", dimensions), bool)
    return Answer(f"`DestinationDeliveryFailures` of the function: {failures:g}", failures > 0)
