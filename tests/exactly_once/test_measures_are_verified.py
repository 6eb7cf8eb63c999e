"""Verification, repair and backfill of percentiles, active members, levels and extremes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import ActiveMembers, Event, Extremes, Percentiles, TimeWeighted, Window
from dynamodb_counters._declarations import flatten
from simulation.world import World

START = datetime(2026, 11, 20, tzinfo=UTC)
SEEN = Event("seen", key="id")
DECLARED = (
    Percentiles("sizes", SEEN, by="url", attribute="bytes"),
    Percentiles("hourly", SEEN, by="url", attribute="bytes", time="at"),
    ActiveMembers("users", SEEN, by="url", member="client", time="at", longest=timedelta(days=186)),
    Window("level", SEEN, by="url", time="at", measure=TimeWeighted("bytes"), future_tolerance=None),
    Extremes("latest", SEEN, by="url", attribute="at", show="client"),
)


def _read(world: World, url: str) -> list[Any]:
    sizes, hourly, users, level, latest = DECLARED
    counters, end = world.counters, START + timedelta(days=60)
    return [
        counters.get(sizes, url=url).bins,
        counters.window(hourly, url=url).between(START, end).bins,
        [each.count for each in counters.window(users, url=url).rolling(START, end, timedelta(days=30))],
        counters.window(level, url=url).integral(START, end).value,
        [each.value for each in counters.extremes(latest, url=url, count=100)],
    ]


@pytest.mark.parametrize("name", [part.name for part in flatten(DECLARED)])
def test_numbers_that_a_measure_lacks_are_found_and_repaired(name: str) -> None:
    world = World(*DECLARED)
    for number in range(60):
        at = (START + timedelta(hours=7 * number)).isoformat()
        more = {"url": "ab"[number % 2], "client": f"c{number % 5}", "bytes": number * 37 % 100}
        world.accept(SEEN, {"id": f"{number}", "at": at, **more})
    world.settle()
    world.settle()
    before = [_read(world, url) for url in "ab"]
    best = (min if name == "users-members" else max)(world.items(name), key=lambda item: str(item["sk"]["S"]))
    world.delete(best)
    world.settle()
    assert [_read(world, url) for url in "ab"] != before
    for _ in range(3):
        world.verify().repair()
        world.settle()
    assert [_read(world, url) for url in "ab"] == before
    assert world.missing() == []
