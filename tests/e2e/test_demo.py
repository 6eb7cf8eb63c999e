"""The demonstration: exact counts of hostile traffic, also over HTTP, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters import Counters
from tests.e2e.conftest import Blog, eventually
from tests.e2e.demonstration import GARBAGE, PATIENCE_SECONDS, PROJECT, VIEWS, Run, demonstration, write_log
from tests.integration.waiting import execute

pytestmark = pytest.mark.e2e


def test_counts_are_exact_and_can_be_queried_while_it_is_kept(demo_process: Run) -> None:
    instructions = demo_process.wait_for(r"(\nexport .*\ncounters explain [^\n]*\n)", demo_process.output)[1]
    options: Any = {"cwd": PROJECT, "env": {"PATH": os.environ["PATH"]}, "timeout": PATIENCE_SECONDS}
    answer = execute(["sh", "-c", "set -e\n" + instructions], **options)
    assert answer.returncode == 0, answer.stderr
    assert re.search(r"views +122\b", answer.stdout)
    assert re.search(r"count +121\b", answer.stdout)
    assert "views=122: 122 lines" in answer.stdout
    numbers = json.loads((demo_process.output.parent / "report.json").read_text())
    _check(numbers)
    jobs = numbers["jobs"]
    assert sum(jobs["jobs"].values()) == jobs["accepted"] > jobs["duplicates_rejected"] > 0
    printed = demo_process.output.read_text()
    assert printed.count("Killed the function while it counted; the batch was delivered again") == 4
    assert "Why 122?  122 lines add up to it" in printed
    assert "\nEXACT: " in printed
    deployment = demo_process.deployment()
    orders = Counters(deployment.table("CountersOrders"), client=deployment.emulator.client("dynamodb"))
    assert list(orders.quarantined()) == []


def _check(report: dict[str, Any]) -> None:
    rolling = report["rolling_24h"]
    urls = Counter(target for _, _, target in VIEWS)
    assert report["exact"] is True
    assert report["events_sent"] == len(VIEWS) + 1 + len(VIEWS) // 2
    assert report["distinct_events"] == report["site_views"] == len(VIEWS)
    assert report["duplicates_rejected"] == 1 + len(VIEWS) // 2
    assert report["unparsable_lines"] == len(GARBAGE)
    assert report["views"] == urls
    assert report["visitors"] == Counter(client for client, _, _ in VIEWS)
    assert (rolling["from"], rolling["from_inclusive"]) == ("2015-05-19T10:31:00+00:00", True)
    assert rolling["as_of"] == "2015-05-20T10:31:00+00:00"
    # Two views came before the window.
    assert rolling["counts"] == urls - Counter(target for _, _, target in (VIEWS[0], VIEWS[-1]))
    assert report["crossings"] == {f"{url} up {level}": 1 for url in urls for level in (10, 100) if urls[url] >= level}
    assert 0 < report["write_units_per_event"]["accept"] < 10
    assert 0 < report["write_units_per_event"]["aggregate"] < 40
    assert 0.5 <= report["window_read_units"] < 1


@pytest.mark.night
def test_all_examples_are_exact(tmp_path: Path) -> None:
    with demonstration(tmp_path, "--example", "all") as run:
        assert run.process.wait(PATIENCE_SECONDS) == 0, run.errors.read_text()
    assert run.output.read_text().count("Killed the function while it counted") == 6


@pytest.mark.parametrize("ending", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.night)])
def test_nothing_is_left_when_it_is_ended_amid_the_deployment(tmp_path: Path, ending: signal.Signals) -> None:
    with demonstration(tmp_path) as run:
        port = run.port
        run.wait_for("deploying", run.errors)
        time.sleep(1)
        run.process.send_signal(ending)
        assert run.process.wait(PATIENCE_SECONDS) == 128 + ending
        run.assert_nothing_is_left(port)
    assert "Traceback" not in run.errors.read_text()


@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_log_that_cannot_be_read_is_refused_before_anything_starts(tmp_path: Path, *, is_damaged: bool) -> None:
    log = tmp_path / "none.log"
    refusal = f"argument --log: invalid log '{log}': expected a file that can be read"
    if is_damaged:
        log.write_bytes(write_log(log).read_bytes()[:-20])
        refusal = f"cannot read the log {log}: its gzip data is damaged or cut off"
    with demonstration(tmp_path, "--log", str(log)) as run:
        assert run.process.wait(PATIENCE_SECONDS) == 2
    assert run.errors.read_text().startswith(f"demo: error: {refusal}")
    assert run.errors.read_text().count("\n") == 1
    assert list(run.temporary.iterdir()) == []


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
    assert blog.post([*events, view("/b", "c2")])[0] == 202
    assert eventually(lambda: blog.views("/b") == 2)
    assert blog.views("/a#?&,é") == 40
    # Other tests count on the same blog.
    status, top = blog.ask("v1/views/top", limit="100")
    assert status == 200
    assert ({"url": "/a#?&,é"}, 40) in [(group["values"], group["measures"]["views"]) for group in top["groups"]]
    scores = [group["measures"]["views"] for group in top["groups"]]
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
        answer = queues.get_queue_attributes(QueueUrl=dead, AttributeNames=["ApproximateNumberOfMessages"])
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])

    assert eventually(lambda: letters() == 2)
    messages = queues.receive_message(QueueUrl=dead, MaxNumberOfMessages=10, MessageAttributeNames=["All"])["Messages"]
    assert {name for letter in messages for name in letter["MessageAttributes"]} == {"reason", "taken"}
