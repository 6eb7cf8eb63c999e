"""Events and counts over HTTP, deployed: accepted at once, counted once, refused with a reason."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.conftest import Blog, eventually

pytestmark = pytest.mark.e2e

NOW = datetime.now(UTC).replace(microsecond=0)


def view(url: str, client: str, seconds_ago: int = 0) -> dict[str, str]:
    return {"url": url, "time": (NOW - timedelta(seconds=seconds_ago)).isoformat(), "clientId": client}


def test_events_are_taken_and_counted_once(blog: Blog) -> None:
    events = [view("/a#?&,é", f"c{client}", client) for client in range(40)]
    assert blog.post(events) == (202, {"events": 40})
    assert blog.post(events[:15]) == (202, {"events": 15})
    assert blog.post(events[0]) == (202, {"events": 1})
    assert blog.post([view("/b", "c1")]) == (202, {"events": 1})
    assert eventually(lambda: (blog.views("/a#?&,é"), blog.views("/b")) == (40, 1))
    again = [*events, view("/b", "c2")]
    assert blog.post(again)[0] == 202
    assert eventually(lambda: blog.views("/b") == 2)
    assert blog.views("/a#?&,é") == 40

    # Other tests count on the same blog.
    status, top = blog.ask("v1/views/top", limit="100")
    assert status == 200
    assert ({"url": "/a#?&,é"}, 40) in [(one["values"], one["measures"]["views"]) for one in top["groups"]]
    scores = [one["measures"]["views"] for one in top["groups"]]
    assert scores == sorted(scores, reverse=True)
    counted = blog.ask("v1/views_24h", url="/a#?&,é", last="24h")[1]
    assert counted["count"] == 40
    steps = blog.ask("v1/views_24h/series", url="/a#?&,é", last="24h", step="1h")[1]["series"]
    assert (len(steps), sum(step["count"] for step in steps)) == (24, 40)
    assert (steps[0]["start"], steps[-1]["end"]) == (counted["start"], counted["end"])


def test_a_malformed_message_ends_in_the_dead_letter_queue_and_blocks_nothing(blog: Blog) -> None:
    queues = blog.emulator.client("sqs")
    urls = queues.list_queues()["QueueUrls"]
    [dead] = [url for url in urls if "DeadLetter" in url]
    [queue] = [url for url in urls if url != dead and "Inbox" not in url]
    # As in direct mode, where nothing checks what is posted.
    queues.send_message(QueueUrl=queue, MessageBody="no JSON")
    queues.send_message(QueueUrl=queue, MessageBody=json.dumps(view("/complete", "c1")))
    queues.send_message(QueueUrl=queue, MessageBody=json.dumps({"url": "/incomplete"}))
    assert eventually(lambda: blog.views("/complete") == 1)

    def letters() -> int:
        found = queues.get_queue_attributes(QueueUrl=dead, AttributeNames=["ApproximateNumberOfMessages"])
        return int(found["Attributes"]["ApproximateNumberOfMessages"])

    assert eventually(lambda: letters() == 2)
    found = queues.receive_message(QueueUrl=dead, MaxNumberOfMessages=10, MessageAttributeNames=["All"])["Messages"]
    assert {name for letter in found for name in letter["MessageAttributes"]} == {"reason", "taken"}
