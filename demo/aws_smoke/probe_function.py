"""Inline code of the probe's functions: prints what Lambda hands over, and fails or sends on where that asks for it."""

import json
import os
from typing import Any

import boto3

POISON = "poison"


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Print the event with its records in short; of a queue's messages, send on those that have hops left."""
    records = [_short(record) for record in event.get("Records", ())]
    print(json.dumps({**event, "Records": records, "header": os.environ.get("_X_AMZN_TRACE_ID", "")}))
    if any(record.get("key") == POISON for record in records):
        raise ValueError(POISON)
    failed = [record["id"] for record in records if "body" in record and not _send_on(record["body"])]
    last = records[-1]["sequence"] if records and "sequence" in records[-1] else event.get("state", {}).get("last")
    # A mapping of a stream takes the state, one of a queue the failures.
    return {"state": {"last": last} if last else {}, "batchItemFailures": [{"itemIdentifier": one} for one in failed]}


def _short(record: dict[str, Any]) -> dict[str, Any]:
    if "dynamodb" in record:
        change = record["dynamodb"]
        return {"key": change["Keys"]["sk"]["S"], "sequence": change["SequenceNumber"]}
    header = record["attributes"].get("AWSTraceHeader", "")
    return {"id": record["messageId"], "body": json.loads(record["body"]), "header": header}


def _send_on(body: dict[str, Any]) -> bool:
    """Send a message with one hop less; at its last hop, return whether it succeeds."""
    if body["hops"] > 0:
        text = json.dumps({**body, "hops": body["hops"] - 1})
        boto3.client("sqs").send_message(QueueUrl=os.environ["QUEUE_URL"], MessageBody=text)
        return True
    return not body["fails"]
