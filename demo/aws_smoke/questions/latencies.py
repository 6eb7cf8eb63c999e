"""Durations: of cold starts, of accepting an event, and until it is counted."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from demo.aws_smoke.deployed import Deployed, UnansweredError
from demo.aws_smoke.questions.question import Answer
from demo.aws_smoke.removal import created
from dynamodb_counters import Counters
from examples.blog.declarations import VIEW, VIEWS

_URL: Final = "/smoke/latency"
_ACCEPTED: Final = 100
_COUNTED: Final = 10
_LONGEST_WAIT: Final = 60.0
_PAUSE: Final = 0.05
_INIT: Final = re.compile(r"Init Duration: ([\d.]+) ms")
_NAME: Final = re.compile(r"-([A-Za-z]+?)(?:LogGroup|Logs)?[0-9A-F]{8}-\w+$")


def init_milliseconds(line: str) -> float | None:
    """The duration of a cold start that a line of Lambda reports, in either of its formats."""
    if (found := _INIT.search(line)) is not None:
        return float(found[1])
    if '"platform.report"' not in line:
        return None
    milliseconds = json.loads(line)["record"]["metrics"].get("initDurationMs")
    return None if milliseconds is None else float(milliseconds)


def cold_starts(deployed: Deployed) -> Answer:
    """Read the cold starts of all functions in their logs."""
    found = {}
    for name, kind in created(deployed.account.client("cloudformation"), deployed.stack):
        label = _NAME.search(name)
        if kind == "AWS::Logs::LogGroup" and label is not None:
            durations = [init_milliseconds(line) for _, line in deployed.logged(name)]
            found[label[1]] = sorted(duration for duration in durations if duration is not None)
    shown = [
        f"{label} {min(all_):.0f}-{max(all_):.0f} ms ({len(all_)})" for label, all_ in sorted(found.items()) if all_
    ]
    if not shown:
        deployed.not_emulated("reports no cold starts")
        raise UnansweredError("no log has a cold start")
    return Answer("; ".join(shown), as_assumed=None)


def accepting(deployed: Deployed) -> Answer:
    """Accept events one after the other from here."""
    counters, seconds = _counters(deployed), []
    for number in range(_ACCEPTED):
        begin = time.perf_counter()
        counters.accept(VIEW, _view(f"accepted-{number}"))
        seconds.append(time.perf_counter() - begin)
    return Answer(f"from where it ran: {_quantiles(seconds)} of {_ACCEPTED}", as_assumed=None)


def counting(deployed: Deployed) -> Answer:
    """Accept an event after the other, each once the one before is counted."""
    counters = _counters(deployed)

    def views() -> int:
        return int(counters.get(VIEWS, url=_URL, consistent=True).measures["views"])

    if not deployed.eventually(lambda: views() == _ACCEPTED):
        raise UnansweredError(f"{views()} of the events accepted before are counted")
    seconds = []
    for number in range(_COUNTED):
        counters.accept(VIEW, _view(f"counted-{number}"))
        seconds.append(_seconds_until(views, _ACCEPTED + number + 1))
    return Answer(f"from the answer to a read that has it: {_quantiles(seconds)} of {_COUNTED}", as_assumed=None)


def _counters(deployed: Deployed) -> Counters:
    return Counters(deployed.outputs["TableName"], client=deployed.account.client("dynamodb"))


def _view(client: str) -> dict[str, str]:
    return {"url": _URL, "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "clientId": client}


def _seconds_until(read: Callable[[], int], expected: int) -> float:
    begin = time.monotonic()
    while read() < expected:
        if time.monotonic() - begin > _LONGEST_WAIT:
            raise UnansweredError(f"an event was not counted within {_LONGEST_WAIT:g} s")
        time.sleep(_PAUSE)
    return time.monotonic() - begin


def _quantiles(seconds: Sequence[float]) -> str:
    """The median and the 99th percentile."""
    p99 = statistics.quantiles(seconds, n=100, method="inclusive")[-1]
    return f"p50 {1000 * statistics.median(seconds):.0f} ms, p99 {1000 * p99:.0f} ms"
