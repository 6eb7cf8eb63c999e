"""A service's table with a week of requests: what the examples of measures beyond sums look at."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from demo.cli_examples.blog import NOW
from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Count,
    Event,
    Extremes,
    Percentiles,
    Threshold,
    TimeWeighted,
    Window,
)
from dynamodb_counters._declarations import Declarable
from dynamodb_counters.testing import counters_in_memory

REQUEST = Event("request", key=("route", "at", "user"))
CHANGE = Event("change", key=("team", "id"))
USAGE = Aggregate("usage", REQUEST, by=("user", "at:month"), requests=Count())
DECLARED: Final[tuple[Declarable, ...]] = (
    ActiveMembers("users", REQUEST, member="user", time="at"),
    Percentiles("latency", REQUEST, by="route", attribute="ms", time="at"),
    Percentiles("sizes", REQUEST, by="route", attribute="bytes"),
    Extremes("slowest", REQUEST, by="route", attribute="ms", show="user"),
    Window("seats", CHANGE, by="team", time="at", measure=TimeWeighted("seats"), retention=None),
    USAGE,
    Threshold("plan", USAGE, at=[24, 30], once=True),
)
_DAYS: Final = 7
_PER_DAY: Final = 60


@dataclass
class Requests:
    """The table, and its time, which stands still."""

    name: str
    clients: dict[str, Any]

    def clock(self) -> float:
        return NOW

    def live(self, seconds: float) -> None:
        raise NotImplementedError(f"{seconds} s cannot pass here")


class _Bus:
    """The client of EventBridge, which takes every event."""

    def put_events(self, *, Entries: Sequence[Any]) -> dict[str, Any]:  # noqa: N803
        return {"Entries": [{"EventId": str(number)} for number, _ in enumerate(Entries)]}


@contextmanager
def requests() -> Iterator[Requests]:
    """The table at `NOW`."""
    rng, now = random.Random(34), datetime.fromtimestamp(NOW, UTC)
    with counters_in_memory(DECLARED, now=now - timedelta(days=_DAYS)) as counters:
        for number in range(_DAYS * _PER_DAY):
            at = now - timedelta(days=_DAYS) * (1 - number / (_DAYS * _PER_DAY))
            counters.clock.advance(at - counters.clock.now)
            user = f"u{int(rng.expovariate(0.1))}"
            event: dict[str, Any] = {
                "route": rng.choice(("/", "/search")),
                "at": at.isoformat(timespec="seconds"),
                "user": user,
            }
            numbers = {"ms": int(rng.lognormvariate(4.6, 0.7)), "bytes": rng.randrange(2_000, 60_000)}
            counters.accept(REQUEST, event | numbers)
        counters.clock.advance(now - counters.clock.now)
        for number, (days, seats) in enumerate(((40, 12), (3, 5), (1, -2))):
            since = (now - timedelta(days=days)).isoformat(timespec="seconds")
            counters.accept(CHANGE, {"team": "a", "id": number, "at": since, "seats": seats})
        yield Requests(counters.table_name, {"dynamodb": counters.client, "events": _Bus()})
