"""Many events over HTTP: none lost, none double.

A few thousand by default; a hundred thousand take three minutes:
``EVENTS=100000 .venv/bin/python -m pytest tests/e2e/test_many_events.py -s``.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.e2e.conftest import Blog, eventually

pytestmark = pytest.mark.e2e

EVENTS = int(os.environ.get("EVENTS", "5000"))
BATCH = 500
DUPLICATES = 0.1
PATIENCE_SECONDS = 120 + EVENTS / 100
# Few of both: each write takes the emulator time in proportion to the number of partition keys.
URLS = [f"/many/{number}" for number in range(20)]
CLIENTS = 50


def test_none_is_lost_and_none_is_double(blog: Blog) -> None:
    chance = random.Random(6)
    now = datetime.now(UTC).replace(microsecond=0)
    events = [
        _view(chance.choice(URLS), now - timedelta(seconds=number // CLIENTS), f"c{number % CLIENTS}")
        for number in range(EVENTS)
    ]
    sent = events + chance.sample(events, int(EVENTS * DUPLICATES))
    chance.shuffle(sent)
    # Messages of other tests that can never be accepted stay forever where no dead-letter queue takes them.
    poison = _waiting(blog)
    started = time.monotonic()
    for start in range(0, len(sent), BATCH):
        _post(blog, sent[start : start + BATCH])
    posted = time.monotonic() - started
    assert eventually(lambda: _waiting(blog) <= poison, seconds=PATIENCE_SECONDS)
    # The emulator's stream has one shard: once this event is counted, all before it are.
    _post(blog, [_view("/many/last", now, "c")])
    assert eventually(lambda: blog.views("/many/last") == 1, seconds=PATIENCE_SECONDS)
    print(f"\n{len(sent):,} posted in {posted:.0f} s, all counted after {time.monotonic() - started:.0f} s")
    assert {url: blog.views(url) for url in URLS} == Counter(event["url"] for event in events)


def _view(url: str, at: datetime, client: str) -> dict[str, str]:
    return {"url": url, "time": at.isoformat(), "clientId": client}


def _post(blog: Blog, events: list[dict[str, str]]) -> None:
    while blog.post(events)[0] != 202:
        time.sleep(1)


def _waiting(blog: Blog) -> int:
    """Count the messages in queues or in the hands of a function."""
    queues: Any = blog.emulator.client("sqs")
    names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    told = [
        queues.get_queue_attributes(QueueUrl=url, AttributeNames=list(names))["Attributes"]
        for url in queues.list_queues()["QueueUrls"]
    ]
    return sum(int(attributes[name]) for attributes in told for name in names)
