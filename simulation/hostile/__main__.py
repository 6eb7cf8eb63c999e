"""Attacks every door: ``python -m simulation.hostile --requests 30000 --seed 1``.

Fails on a 5xx (503 of a throttled table aside), on an exception, on a request that takes a second of CPU time, and on
what got 202 and then is refused by DynamoDB or goes to quarantine although the receiver knows the declarations.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from simulation.hostile.costly import BODIES
from simulation.hostile.doors import Answer, Door, all_doors
from simulation.hostile.requests import Stranger

MAX_CPU_SECONDS: Final = 1.0
_REPETITIONS: Final = 3
_MOST_SHOWN: Final = 20


@dataclass
class Totals:
    """Results of the requests at one door."""

    statuses: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    slowest_request: str = ""
    quarantined: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, answer: Answer, what: str) -> None:
        self.statuses[str(answer.status or "exception")] += 1
        self.quarantined += answer.quarantined
        if answer.cpu_seconds > self.slowest:
            self.slowest, self.slowest_request = answer.cpu_seconds, what
        if answer.wrong or answer.cpu_seconds > MAX_CPU_SECONDS:
            self.wrong.append(f"{answer.wrong or 'slow'} ({answer.cpu_seconds:.2f} s): {what}")


def attack(
    doors: list[Door], requests: int, seed: int, costly: Mapping[str, Callable[[], str]] = BODIES
) -> dict[str, Totals]:
    """Send the costly bodies to each door, then seeded requests to all doors in turn."""
    totals = {door.name: Totals() for door in doors}
    for number, (door, what, request) in enumerate(_requests(doors, seed, costly)):
        if number >= requests:
            break
        with contextlib.redirect_stdout(io.StringIO()):
            answer = _answer(door, request)
        totals[door.name].add(answer, what)
    return totals


def _answer(door: Door, request: Any) -> Answer:
    """Answer a request; a slow one again, and the fastest counts: a busy machine slows some, garbage of others one."""
    answer = door.answer(request)
    for _ in range(_REPETITIONS):
        if answer.wrong or answer.cpu_seconds <= MAX_CPU_SECONDS:
            break
        gc.collect()
        # The consumer's events are duplicates now: to the function, they cost no less.
        again = door.answer(request)
        answer = replace(again, cpu_seconds=min(answer.cpu_seconds, again.cpu_seconds))
    return answer


def _requests(
    doors: list[Door], seed: int, costly: Mapping[str, Callable[[], str]]
) -> Iterator[tuple[Door, str, dict[str, Any]]]:
    stranger = Stranger(seed)
    for name, make in costly.items():
        body = make()
        for door in doors:
            yield door, name, _posted("/events" if door.posts else "/v1/batch", body)
    while True:
        for door in doors:
            request = stranger.post() if door.posts else stranger.get()
            text = request.get("body")
            text = text if isinstance(text, str) else ""
            if door.name.startswith("consumer"):
                request["body"] = text  # SQS delivers texts only.
            yield door, f"body of {len(text):,} characters, {request!r:.1500}", request


def _posted(path: str, body: str) -> dict[str, Any]:
    claims = {"jwt": {"claims": {"sub": "c0"}}}
    context = {"http": {"method": "POST"}, "stage": "$default", "authorizer": claims}
    headers = {"content-type": "text/plain"}
    return {"rawPath": path, "headers": headers, "requestContext": context, "body": body, "isBase64Encoded": False}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulation.hostile", description=__doc__)
    parser.add_argument("--requests", type=int, default=30_000)
    parser.add_argument("--seed", type=int, help="default: from the clock")
    given = parser.parse_args()
    seed = int(time.time()) if given.seed is None else given.seed
    os.environ["POWERTOOLS_LOG_LEVEL"] = "CRITICAL"
    begun = time.monotonic()
    totals = attack(all_doors(), given.requests, seed)
    sent = sum(one.statuses.total() for one in totals.values())
    print(f"{sent:,} requests in {time.monotonic() - begun:.0f} s, seed {seed}")
    for name, one in totals.items():
        statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(one.statuses.items()))
        print(f"  {name:28} {statuses}; slowest {one.slowest:.2f} s CPU ({one.slowest_request:.60})")
        print(f"  {'':28} {one.quarantined:,} of the events that got 202 would be quarantined")
    wrong = [f"{name}: {text}" for name, one in totals.items() for text in one.wrong]
    print(f"{len(wrong)} wrong answers", *wrong[:_MOST_SHOWN], sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
