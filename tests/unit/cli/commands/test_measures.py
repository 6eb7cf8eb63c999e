"""Commands show measures beyond sums: active members, percentiles, levels and extremes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import ActiveMembers, Event, Extremes, Percentiles, TimeWeighted, Window
from dynamodb_counters._declarations import Declarable
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from tests.unit.cli.in_process import Done, run

VIEW = Event("view", key=("url", "time", "client"))
CHANGE = Event("change", key=("team", "id"))
DECLARED: list[Declarable] = [
    ActiveMembers("users", VIEW, by="url", member="client", time="time"),
    Percentiles("paces", VIEW, by="url", attribute="ms", time="time"),
    Percentiles("sizes", VIEW, by="url", attribute="ms"),
    Extremes("slowest", VIEW, by="url", attribute="ms", show="client"),
    Window("seats", CHANGE, by="team", time="at", measure=TimeWeighted("seats"), retention=None),
]
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(scope="module")
def counters() -> Iterator[CountersInMemory]:
    with counters_in_memory(DECLARED, now=NOW) as counters:
        for days, clients in ((3, 2), (1, 3), (0, 1)):
            for number in range(clients):
                time = (NOW - days * DAY - HOUR).isoformat()
                event = {"url": "/", "time": time, "client": f"c{number + days}", "ms": 10 * days + number}
                counters.accept(VIEW, event)
        for number, (hours, seats) in enumerate(((48, 5), (12, 3), (6, -2))):
            at = (NOW - hours * HOUR).isoformat()
            counters.accept(CHANGE, {"team": "a", "id": number, "at": at, "seats": seats})
        yield counters


def ask(counters: CountersInMemory, *arguments: str) -> Done:
    return run(*arguments, "--table", counters.table_name, client=counters.client, clock=counters.clock)


def document(counters: CountersInMemory, *arguments: str) -> Any:
    return ask(counters, *arguments, "--json").document


@pytest.mark.parametrize(("last", "count"), [("2d", 4), ("4d", 5)])
def test_active_members_of_a_span_are_counted_once(counters: CountersInMemory, last: str, count: int) -> None:
    assert document(counters, "get", "users", "url=/", "--last", last)["count"] == count


def test_percentiles_of_a_span_are_shown(counters: CountersInMemory) -> None:
    assert "p99" in ask(counters, "get", "paces", "url=/", "--last", "2d").out


def test_the_smallest_of_extremes_are_listed(counters: CountersInMemory) -> None:
    found = document(counters, "get", "slowest", "url=/", "--order", "smallest", "--limit", "1")
    assert [one["value"] for one in found["smallest"]] == [0]
    assert "largest" not in found


def test_a_series_of_members_or_percentiles_adds_nothing_up(counters: CountersInMemory) -> None:
    found = document(counters, "series", "users", "url=/", "--last", "4d")
    assert [one["count"] for one in found["series"]] == [2, 0, 3, 1]
    rolling = document(counters, "series", "users", "url=/", "--last", "4d", "--rolling", "3d")
    assert [one["count"] for one in rolling["series"]] == [2, 2, 4, 4]
    paces = document(counters, "series", "paces", "url=/", "--last", "2d", "--step", "1d", "--p", "1")
    assert [one["count"] for one in paces["series"]] == [3, 1]
    assert abs(paces["series"][0]["percentiles"]["1"] - 12) <= 0.12
    assert "p95" in ask(counters, "series", "paces", "url=/", "--last", "2d").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("get", "sizes", "url=/", "--last", "2d"), "expected no parameters but those of 'sizes': url, p"),
        (("series", "paces", "url=/", "--rolling", "1d"), "invalid rolling='1d': expected no parameters but those of"),
        (("top", "sizes", "url=/"), "no ranking 'sizes' is declared"),
        (("get", "users", "url=/", "--last", "31d"), "the longest of 'users'"),
        (("get", "users", "url=/", "--last", "24h"), "expected 2 to 30 days, since 'users' counts by the day"),
        (("get", "slowest", "url=/", "client=c1"), "expected no parameters but those of 'slowest': url, order"),
    ],
)
def test_options_that_a_measure_lacks_are_refused(
    counters: CountersInMemory, arguments: tuple[str, ...], said: str
) -> None:
    done = ask(counters, *arguments)
    assert (done.code, said in done.err) == (2, True), done
