"""Chains of requests that Lambda's loop detection counts, as the trace headers of messages carry them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from demo.aws_smoke.deployed import Deployed
from demo.aws_smoke.questions.question import Answer

_HOPS: Final = 4
_NEIGHBORED_SECONDS: Final = 20
_LINEAGE: Final = re.compile(r"(?:^|;)\s*Lineage=([^;]*)")
_CHAIN: Final = "chain"


def links(header: str) -> int | None:
    """The longest chain that a header counts; None if it counts none. AWS documents no format; these were published."""
    found = _LINEAGE.search(header)
    counts = [part.rpartition(":")[2] for part in found[1].split("|")] if found else []
    return max((int(count) for count in counts if count.isdecimal()), default=None)


def _batches(deployed: Deployed) -> list[Mapping[str, Any]]:
    """Invocations by the queue."""
    return [event for _, event in deployed.printed() if any("body" in record for record in event["Records"])]


def _messages(batches: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [record for batch in batches for record in batch["Records"] if record["body"]["name"] == _CHAIN]


def by_hop(deployed: Deployed) -> Answer:
    """Send a message that is sent on some times, and others that share its batches; read the headers that came."""
    sqs, queue = deployed.account.client("sqs"), deployed.outputs["ProbeQueue"]

    body = {"name": _CHAIN, "hops": _HOPS, "fails": True}
    sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(body))
    neighbor = json.dumps({"name": "neighbor", "hops": 0, "fails": False})
    for _ in range(1 if deployed.account.emulated else _NEIGHBORED_SECONDS):
        # Several pollers gather batches, each its own.
        entries = [{"Id": f"{number}", "MessageBody": neighbor} for number in range(10)]
        sqs.send_message_batch(QueueUrl=queue, Entries=entries)
        time.sleep(1)

    def arrived(batches: Sequence[Mapping[str, Any]]) -> bool:
        return any(message["body"]["hops"] == 0 for message in _messages(batches))

    batches = deployed.until(lambda: _batches(deployed), arrived)
    if not arrived(batches):
        return Answer(f"the message did not make {_HOPS} hops", as_assumed=False)
    deployed.not_emulated("stamps no trace header")
    return counted_by_hop(batches)


def counted_by_hop(batches: Iterable[Mapping[str, Any]]) -> Answer:
    counts = {message["body"]["hops"]: links(message["header"]) for message in reversed(_messages(batches))}
    found = [counts[hops] for hops in sorted(counts, reverse=True)]
    # The first one comes from outside of Lambda.
    sent_on = [count for count in found[1:] if count is not None]
    grows = len(sent_on) == len(found) - 1 and all(b == a + 1 for a, b in pairwise(sent_on))
    return Answer(f"by hop: {', '.join('none' if count is None else str(count) for count in found)}", grows)


def in_batch(deployed: Deployed) -> Answer:
    """Look at the batches of that run with chains of different lengths."""
    deployed.not_emulated("stamps no trace header")
    return followed_in_batch(_batches(deployed))


def followed_in_batch(batches: Iterable[Mapping[str, Any]]) -> Answer:
    """Describe which chain an invocation goes on with, of those that its messages carry."""
    pairs = []
    for batch in batches:
        given = [links(record["header"]) for record in batch["Records"]]
        if len(set(given)) > 1:
            pairs.append((max(count for count in given if count is not None), links(batch["header"])))
    if not pairs:
        return Answer("no batch had messages of different chains", as_assumed=None)
    shown = ", ".join(f"{longest} → {'none' if own is None else own}" for longest, own in sorted(set(pairs), key=str))
    longest_wins = all(own is not None and own >= longest for longest, own in pairs)
    return Answer(f"longest chain of the batch → chain of the invocation: {shown}", longest_wins)


def redriven(deployed: Deployed) -> Answer:
    """Wait for the message among the dead letters, move it back, and compare the headers."""
    deployed.not_emulated("moves nothing to a dead-letter queue")
    sqs, letters = deployed.account.client("sqs"), deployed.outputs["ProbeLetters"]

    def look() -> list[Any]:
        found: Any = sqs.receive_message(
            QueueUrl=letters, MessageSystemAttributeNames=["AWSTraceHeader"], VisibilityTimeout=0, WaitTimeSeconds=5
        )
        return list(found.get("Messages", []))

    waiting = deployed.until(look, bool)
    if not waiting:
        return Answer("the message did not reach the dead-letter queue", as_assumed=False)

    def failed() -> list[Mapping[str, Any]]:
        return [message for message in _messages(_batches(deployed)) if message["body"]["hops"] == 0]

    arn = sqs.get_queue_attributes(QueueUrl=letters, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    before = failed()
    sqs.start_message_move_task(SourceArn=arn)
    after = deployed.until(failed, lambda found: len(found) > len(before))
    if len(after) == len(before):
        return Answer("the message did not come back", as_assumed=False)
    headers = [before[-1]["header"], waiting[0].get("Attributes", {}).get("AWSTraceHeader", ""), after[-1]["header"]]
    counts = [links(header) for header in headers]
    shown = ", ".join(
        f"{where} {'none' if count is None else count}"
        for where, count in zip(("before", "as a dead letter", "moved back"), counts, strict=True)
    )
    return Answer(f"chain {shown}", counts[0] is not None and len(set(counts)) == 1)
