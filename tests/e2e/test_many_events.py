"""Many events over HTTP: none lost, none double.

A few thousand by default; a hundred thousand take three minutes:
``EVENTS=100000 .venv/bin/python -m pytest tests/e2e/test_many_events.py -s``.
"""

from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.conftest import Blog, eventually

pytestmark = pytest.mark.e2e

EVENTS = int(os.environ.get("EVENTS", "5000"))
BATCH = 500
DUPLICATES = 0.1
# Few of both: each write costs the emulator time in proportion to the partition keys there are.
URLS = [f"/post-{number}" for number in range(20)]
CLIENTS = 50


def test_none_is_lost_and_none_is_double(blog: Blog) -> None:
    chance = random.Random(6)
    now = datetime.now(UTC).replace(microsecond=0)
    events = [
        {
            "url": chance.choice(URLS),
            "time": (now - timedelta(seconds=number // CLIENTS)).isoformat(),
            "clientId": f"c{number % CLIENTS}",
        }
        for number in range(EVENTS)
    ]
    sent = events + chance.sample(events, int(EVENTS * DUPLICATES))
    chance.shuffle(sent)
    started = time.monotonic()
    for start in range(0, len(sent), BATCH):
        while blog.post(sent[start : start + BATCH])[0] != 202:
            time.sleep(1)
    posted = time.monotonic() - started
    expected = {url: sum(event["url"] == url for event in events) for url in URLS}

    def site() -> int:
        return int(blog.ask("v1/aggregates/site")[1]["measures"]["site_views"])

    last = -1
    while (count := site()) < EVENTS and count != last:
        last = count
        eventually(lambda: site() >= EVENTS, 60)
    print(f"\n{len(sent):,} posted in {posted:.0f} s, {count:,} counted after {time.monotonic() - started:.0f} s")
    assert count == EVENTS
    assert {url: blog.views(url) for url in URLS} == expected
