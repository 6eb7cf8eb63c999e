from __future__ import annotations

import json
from typing import Any

from demo.check.inbox import Inbox


class Queue:
    def __init__(self, *details: dict[str, Any]) -> None:
        self.messages = [
            {"Body": json.dumps({"detail": each}), "ReceiptHandle": str(n)} for n, each in enumerate(details)
        ]

    def receive_message(self, **_: object) -> dict[str, Any]:
        return {"Messages": self.messages[:2]} if self.messages else {}

    def delete_message(self, *, ReceiptHandle: str, **_: object) -> None:  # noqa: N803 - as the SDK calls it
        self.messages = [each for each in self.messages if each["ReceiptHandle"] != ReceiptHandle]


def crossing(number: str, level: int, url: str = "/") -> dict[str, Any]:
    return {"id": number, "group": {"url": url}, "direction": "up", "level": level}


def test_a_crossing_that_comes_again_counts_once() -> None:
    queue = Queue(crossing("a", 10), crossing("b", 100), crossing("a", 10), crossing("c", 10, "/about"))
    inbox = Inbox(queue, "url")
    assert inbox.read() == {"/ up 10": 1, "/ up 100": 1, "/about up 10": 1}
    assert queue.messages == []
    assert inbox.read() == {"/ up 10": 1, "/ up 100": 1, "/about up 10": 1}


def test_a_line_that_is_crossed_twice_counts_twice() -> None:
    assert Inbox(Queue(crossing("a", 10), crossing("b", 10)), "url").read() == {"/ up 10": 2}
