"""Verification, repair and backfill of percentiles, active members, levels and extremes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import ActiveMembers, Event, Extremes, Percentiles, TimeWeighted, Window
from dynamodb_counters._declarations import flatten
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import Stream, verify

START = datetime(2026, 11, 20, tzinfo=UTC)
SEEN = Event("seen", key="id")
DECLARED = (
    Percentiles("sizes", SEEN, by="url", attribute="bytes"),
    Percentiles("hourly", SEEN, by="url", attribute="bytes", time="at"),
    ActiveMembers("users", SEEN, by="url", member="client", time="at", longest=timedelta(days=186)),
    Window("level", SEEN, by="url", time="at", measure=TimeWeighted("bytes"), future_tolerance=None),
    Extremes("latest", SEEN, by="url", attribute="at", show="client"),
)


def _see(bench: Workbench, first: int, count: int) -> None:
    for number in range(first, first + count):
        at = (START + timedelta(hours=7 * number)).isoformat()
        values = {
            "id": f"{number}",
            "url": "ab"[number % 2],
            "client": f"c{number % 5}",
            "at": at,
            "bytes": number * 37 % 100,
        }
        bench.counters.accept(SEEN, values)


def _deliver(stream: Stream) -> None:
    """Deliver what there is, and what that brings about."""
    for _ in range(4):
        stream.deliver()


def _read(bench: Workbench, url: str) -> list[Any]:
    sizes, hourly, users, level, latest = DECLARED
    counters, end = bench.counters, START + timedelta(days=60)
    return [
        counters.get(sizes, url=url).bins,
        counters.window(hourly, url=url).between(START, end).bins,
        [each.count for each in counters.window(users, url=url).rolling(START, end, timedelta(days=30))],
        counters.window(level, url=url).integral(START, end).value,
        [each.value for each in counters.extremes(latest, url=url, count=100)],
    ]


@pytest.mark.parametrize("name", [part.name for part in flatten(DECLARED)])
def test_numbers_that_a_measure_lacks_are_found_and_repaired(name: str) -> None:
    bench = Workbench(flatten(DECLARED))
    bench.aggregator.handle({})
    stream = Stream(bench)
    _see(bench, 0, 60)
    _deliver(stream)
    before = [_read(bench, url) for url in "ab"]
    lost = [item for item in bench.table.items() if item.get("_type") == {"S": name}]
    best = (min if name == "users-members" else max)(lost, key=lambda item: item["sk"]["S"])
    bench.table.delete_item(TableName=bench.table.name, Key={"pk": best["pk"], "sk": best["sk"]})
    _deliver(stream)
    assert [_read(bench, url) for url in "ab"] != before
    for _ in range(3):
        found = verify(bench, stream)
        found.repair()
        _deliver(stream)
    assert [_read(bench, url) for url in "ab"] == before
    assert verify(bench, stream).differences == []
