"""The client for browsers: it loses nothing that may be taken later, and what it sends twice counts once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Event, Packed
from simulation.clock import VirtualClock
from simulation.world import World

_SCRIPT = Path(__file__).parents[3] / "infra" / "cdk_dynamodb_counters" / "browser" / "events.js"
_DRIVER = Path(__file__).with_name("browser.mjs")
_SECONDS = 60
CLICK = Event("click", key=("time", "id"), packed=Packed("time"))
CLICKS = Aggregate("clicks", CLICK, by="page")


def run(*steps: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the client does: requests, beacons, and what it gives up."""
    if (node := shutil.which("node")) is None:
        if os.environ.get("CI"):
            pytest.fail("the client for browsers runs in node")
        pytest.skip("the client for browsers runs in node")
    scenario = json.dumps({"script": _SCRIPT.as_uri(), "steps": steps})
    done = subprocess.run([node, _DRIVER], input=scenario, capture_output=True, text=True, timeout=_SECONDS, check=True)
    log: list[dict[str, Any]] = json.loads(done.stdout)
    for entry in log:
        entry["events"] = json.loads(entry["body"]) if "body" in entry else entry["events"]
    return log


def clicks(number: int, size: int = 0) -> list[dict[str, Any]]:
    return [{"page": f"/{index}", **({"text": "ä" * size} if size else {})} for index in range(number)]


def pages(entry: dict[str, Any]) -> list[str]:
    return [event["page"] for event in entry["events"]]


def kinds(log: list[dict[str, Any]]) -> list[str]:
    return [entry["kind"] for entry in log]


def test_events_wait_for_others_and_go_in_one_request() -> None:
    [request] = run({"post": clicks(2), "seconds": 4}, {"post": [{"page": "/2"}], "seconds": 60})
    assert (request["at"], pages(request)) == (5000, ["/0", "/1", "/2"])
    assert len({event["id"] for event in request["events"]}) == 3


def test_a_full_request_is_sent_at_once_and_none_is_longer_than_what_the_receiver_and_a_beacon_take() -> None:
    tiny = [{"id": number, "time": 0} for number in range(1201)]
    log = run({"post": tiny, "seconds": 60})
    assert [(entry["at"], len(entry["events"])) for entry in log] == [(0, 500), (0, 500), (5000, 201)]
    large = run({"post": clicks(40, size=1000), "seconds": 60})
    assert [(entry["at"], len(entry["events"])) for entry in large] == [(0, 14), (0, 14), (5000, 12)]
    assert all(len(entry["body"].encode()) <= 30_000 for entry in large)


def test_an_event_longer_than_what_may_outlive_a_page_stops_no_other() -> None:
    log = run({"post": [*clicks(1, size=40_000), *clicks(2)], "seconds": 60})
    assert [(entry["kind"], pages(entry)) for entry in log] == [("fetch", ["/0"]), ("fetch", ["/0", "/1"])]


def test_what_is_not_taken_now_is_sent_again_ever_later_with_its_ids_and_times() -> None:
    lost = [{"status": status} for status in (0, 503, 429, 500)]
    log = run({"post": clicks(3), "answers": lost, "seconds": 3600})
    assert [entry["status"] for entry in log] == [0, 503, 429, 500, 202]
    assert {entry["body"] for entry in log} == {log[0]["body"]}
    pauses = [later["at"] - entry["at"] for entry, later in pairwise(log)]
    assert all(1000 * 2**number <= pause <= 2000 * 2**number for number, pause in enumerate(pauses))


def test_events_come_again_within_a_minute_of_an_outage_of_a_day() -> None:
    outage = [{"status": 503}] * 30
    pauses = [entry["at"] for entry in run({"post": clicks(1), "answers": outage, "seconds": 86_400})]
    assert len(pauses) == 31
    assert max(later - at for at, later in pairwise(pauses)) <= 60_000


def test_an_event_that_is_refused_is_given_up_and_the_others_are_taken() -> None:
    errors = [{"index": 1, "detail": "expected a value"}]
    log = run({"post": clicks(3), "answers": [{"status": 400, "errors": errors}], "seconds": 60})
    assert kinds(log) == ["fetch", "refused", "fetch"]
    assert [pages(entry) for entry in log[1:]] == [["/1"], ["/0", "/2"]]


@pytest.mark.parametrize("text", ["null", "[]", '{"errors": null}', '{"errors": "x"}', "<html>"])
def test_an_answer_that_is_no_receiver_s_stops_no_later_event(text: str) -> None:
    later = {"post": clicks(1), "seconds": 60}
    log = run({"post": clicks(1), "answers": [{"status": 400, "text": text}], "seconds": 60}, later)
    assert kinds(log) == ["fetch", "refused", "fetch"]


@pytest.mark.parametrize("answer", [{"status": 403}, {"status": 400}, {"status": 400, "errors": [{"index": 9}]}])
def test_a_request_that_is_refused_as_a_whole_is_given_up(answer: dict[str, Any]) -> None:
    log = run({"post": clicks(2), "answers": [answer], "seconds": 3600})
    assert (kinds(log), pages(log[1])) == (["fetch", "refused"], ["/0", "/1"])


@pytest.mark.parametrize("event", ["pagehide", "visibilitychange"])
def test_a_page_that_is_left_sends_what_waits_and_again_if_it_comes_back(event: str) -> None:
    log = run({"post": clicks(2)}, {"hide": event}, {"hide": event, "seconds": 60})
    assert kinds(log) == ["beacon", "fetch"]
    assert log[0]["body"] == log[1]["body"]


def test_a_beacon_that_the_browser_refuses_is_no_loss() -> None:
    log = run({"post": clicks(2), "beacons": False}, {"hide": "pagehide"}, {"hide": "pagehide", "seconds": 60})
    assert kinds(log) == ["beacon", "beacon", "fetch"]


def test_a_beacon_that_did_not_arrive_is_sent_again_when_the_page_is_left_again() -> None:
    """Nobody says that it was sent in vain: while the browser was offline."""
    for back in ({"show": True}, {"answers": [{"status": 0}], "seconds": 5}):
        log = run({"post": clicks(2)}, {"hide": "visibilitychange"}, back, {"hide": "pagehide"})
        assert [pages(entry) for entry in log if entry["kind"] == "beacon"] == [["/0", "/1"]] * 2


def test_what_is_under_way_leaves_room_for_what_is_not() -> None:
    slow = [{"status": 202, "ms": 9000}]
    old, new = clicks(14, size=1000), [{**click, "new": True} for click in clicks(16, size=1000)]
    request, *beacons = run({"post": old, "answers": slow, "seconds": 5}, {"post": new}, {"hide": "pagehide"})
    assert (request["kind"], len(request["events"])) == ("fetch", 14)
    assert [(len(beacon["events"]), beacon["taken"]) for beacon in beacons] == [(14, True), (2, True), (14, False)]
    assert all("new" in event for beacon in beacons[:2] for event in beacon["events"])


def test_what_is_sent_twice_counts_once() -> None:
    """A request whose answer is lost was taken all the same."""
    lost: list[dict[str, Any]] = [{"status": 0}, {"status": 503}]
    log = run({"post": clicks(5), "answers": lost, "seconds": 6}, {"hide": "pagehide", "seconds": 60})
    assert sorted(kinds(log)) == ["beacon", "fetch", "fetch", "fetch"]
    world = World(CLICKS, clock=VirtualClock(time.time()))
    for entry in log:
        world.counters.accept_many(CLICK, entry["events"])
    world.settle()
    counts = [world.counters.get(CLICKS, page=page).measures["clicks"] for page in pages(log[0])]
    assert counts == [1] * 5
