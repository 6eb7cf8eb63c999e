"""Reads of all kinds: windows, series, active members, percentiles, levels, extremes, and crossings of thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Count,
    Event,
    Extremes,
    Percentiles,
    Sum,
    Threshold,
    TimeWeighted,
    Window,
)
from dynamodb_counters._declarations import Declarable
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from simulation.world import World
from tests.unit.cli.in_process import Done, run

VIEW = Event("view", key=("url", "time", "client"))
CHANGE = Event("change", key=("team", "id"))
PACE = Window("pace", VIEW, by="url", time="time", measure=Sum("ms"), longest=timedelta(days=366))
VIEWS = Aggregate("views", VIEW, by="url", n=Count())
DECLARED: list[Declarable] = [
    ActiveMembers("users", VIEW, by="url", member="client", time="time"),
    Percentiles("paces", VIEW, by="url", attribute="ms", time="time"),
    Percentiles("sizes", VIEW, by="url", attribute="ms"),
    Extremes("slowest", VIEW, by="url", attribute="ms", show="client"),
    Window("seats", CHANGE, by="team", time="at", measure=TimeWeighted("seats"), retention=None),
    PACE,
    VIEWS,
    Aggregate("all", VIEW, n=Count()),
    Threshold("busy", VIEWS, at=[2, 3], direction="both"),
    Threshold("first", VIEWS, at=[1, 2], once=True),
]
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(scope="module")
def counters() -> Iterator[CountersInMemory]:
    with counters_in_memory(DECLARED, now=NOW - DAY) as counters:
        for days, clients in ((3, 2), (1, 3), (0, 1)):
            for number in range(clients):
                time = (NOW - days * DAY - HOUR).isoformat()
                event = {"url": "/", "time": time, "client": f"c{number + days}", "ms": 10 * days + number}
                counters.accept(VIEW, event)
            counters.clock.advance(DAY / 3)
        for number, (hours, seats) in enumerate(((48, 5), (12, 3), (6, -2))):
            at = (NOW - hours * HOUR).isoformat()
            counters.accept(CHANGE, {"team": "a", "id": number, "at": at, "seats": seats})
        views = [{"url": "/b", "time": (NOW - HOUR).isoformat(), "client": f"b{n}", "ms": 1} for n in (1, 2, 3)]
        counters.accept_many(VIEW, views)
        counters.retract(VIEW, {"url": "/b", "time": (NOW - HOUR).isoformat(), "client": "b1"})
        yield counters


def ask(counters: CountersInMemory, *arguments: str) -> Done:
    return run(*arguments, "--table", counters.table_name, client=counters.client, clock=counters.clock)


def document(counters: CountersInMemory, *arguments: str) -> Any:
    return ask(counters, *arguments, "--json").document


@pytest.mark.parametrize(("last", "count"), [("2d", 4), ("4d", 5)])
def test_active_members_of_a_span_are_counted_once(counters: CountersInMemory, last: str, count: int) -> None:
    assert document(counters, "get", "users", "url=/", "--last", last)["count"] == count


def test_a_window_counts_a_span_of_another_zone(counters: CountersInMemory) -> None:
    span = ("--since", "2026-11-17T00:00+02:00", "--until", "2026-11-18T00:00+02:00")
    found = document(counters, "get", "pace", "url=/", *span)
    assert (found["window"], found["count"], found["end"]) == ("pace", 61, "2026-11-17T22:00:00+00:00")
    shown = [line.split() for line in ask(counters, "get", "pace", "url=/", *span).out.splitlines()]
    assert shown[:2] == [["count", "61"], ["start", "2026-11-16T22:00:00+00:00"]]


def test_a_level_has_its_ends_and_its_integral(counters: CountersInMemory) -> None:
    found = document(counters, "get", "seats", "team=a", "--since", "2026-11-19T12:00Z", "--until", "2026-11-20T12:00Z")
    assert (found["opening"], found["closing"], found["unit_hours"]) == (5, 6, 12 * 5 + 6 * 8 + 6 * 6)


def test_extremes_are_listed_from_the_ends_that_are_asked_for(counters: CountersInMemory) -> None:
    found = document(counters, "get", "slowest", "url=/", "--order", "smallest", "--limit", "1", "--all")
    assert [each["value"] for each in found["smallest"]] == [0]
    assert "largest" not in found
    done = ask(counters, "get", "slowest", "url=/", "--all")
    assert (done.code, [line.split()[0] for line in done.out.splitlines()][2::6]) == (0, ["largest", "smallest"])


def test_a_series_is_one_of_steps_or_rolling(counters: CountersInMemory) -> None:
    found = document(counters, "get", "users", "url=/", "--last", "4d", "--step", "1d")
    assert [each["count"] for each in found["series"]] == [2, 0, 3, 1]
    rolling = document(counters, "get", "users", "url=/", "--last", "4d", "--rolling", "3d")
    assert [each["count"] for each in rolling["series"]] == [2, 2, 4, 4]
    paces = document(counters, "get", "paces", "url=/", "--last", "2d", "--step", "1d", "--p", "1")
    assert [each["count"] for each in paces["series"]] == [3, 1]
    assert abs(paces["series"][0]["percentiles"]["1"] - 12) <= 0.12
    header = ask(counters, "get", "paces", "url=/", "--last", "2d", "--step", "1d").out.splitlines()[0]
    assert header.split() == ["start", "count", "p50", "p90", "p95", "p99", "max", "end"]


def test_crossings_of_a_threshold_are_listed_as_its_events(counters: CountersInMemory) -> None:
    def fired(*arguments: str) -> list[tuple[Any, ...]]:
        found = document(counters, "events", *arguments)["events"]
        return [
            tuple({**each, **each["group"]}[name] for name in ("url", "direction", "level", "new")) for each in found
        ]

    early, late = [("/", "up", 2, 2), ("/", "up", 3, 3)], [("/b", "up", 2, 2), ("/b", "up", 3, 3), ("/b", "down", 3, 2)]
    assert fired("busy") == early + late
    until = ("--until", "2026-11-20T00:00Z")
    assert (fired("busy", "--since", until[1]), fired("busy", *until)) == (late, early)
    assert len(fired("first")) == 4
    assert len(fired("first", *until)) == 2
    refused = ask(counters, "events", "busy", "--limit", "1")
    assert (refused.code, "expected --since and --until alone" in refused.err) == (2, True)


def test_a_group_is_explained_by_its_events_and_what_differs(counters: CountersInMemory) -> None:
    done = ask(counters, "explain", "views", "url=/", "--json")
    assert (done.code, done.document["numbers"], len(done.document["lines"])) == (0, {"n": 6}, 6)
    shown = ask(counters, "explain", "views", "url=/", "--limit", "1").out
    assert ("n=6: 6 lines, 1 of them shown" in shown, "c1" in shown) == (True, False)
    span = ("--since", "2026-11-19T00:00Z", "--until", "2026-11-20T00:00Z")
    assert document(counters, "explain", "pace", "url=/", *span)["numbers"] == {"total": 33}
    refused = ask(counters, "explain", "all")
    assert (refused.code, "expected True, for a Scan that takes" in refused.err) == (2, True)
    assert document(counters, "explain", "all", "--scan")["numbers"] == {"n": 8}


def test_what_differs_comes_last() -> None:
    bench = World(VIEWS)
    bench.counters.accept(VIEW, {"url": "/", "time": NOW.isoformat(), "client": "c", "ms": 1})
    client: Any = bench.table
    done = run("explain", "views", "url=/", "--table", bench.table.name, client=client, clock=bench.clock)
    assert done.code == 1
    assert "0: 1 lines\ndiffers by n=-1: changes meanwhile, records on their way" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("get", "sizes", "url=/", "--last", "2d"), "expected a field of 'sizes': url; or of p"),
        (("get", "paces", "url=/", "--rolling", "1d"), "invalid rolling='1d': expected a field of"),
        (("get", "sizes", "url=/", "--top"), "no ranking 'sizes' is declared"),
        (("get", "views", "url=/", "--step", "1h"), "no series 'views' is declared"),
        (("get", "users", "url=/", "--last", "31d"), "the longest of 'users'"),
        (("get", "users", "url=/", "--last", "24h"), "expected more than the unit that 'users' counts by"),
        (("get", "slowest", "url=/", "client=c1"), "expected a field of 'slowest': url; or of order"),
        (("get", "views", "url=/", "--last", "1h"), "invalid last='1h': expected a field of"),
        (("get", "pace", "plan=free", "--last", "1h"), "invalid plan='free': expected a field of"),
    ],
)
def test_options_that_a_measure_lacks_are_refused(
    counters: CountersInMemory, arguments: tuple[str, ...], said: str
) -> None:
    done = ask(counters, *arguments)
    assert (done.code, said in done.err) == (2, True), done


def test_a_read_says_which_counts_lack_something() -> None:
    kinds = Aggregate("kinds", VIEW, by=("url", "kind"), ms=Sum("ms"))
    bench = World(kinds)
    late = replace(kinds, name="late", pk="LATE#{url}", sk="KIND#{kind}")
    bench.deploy(kinds, late, PACE)

    def ask(*arguments: str) -> Done:
        client: Any = bench.table
        return run(*arguments, "--table", bench.table.name, client=client, clock=bench.clock)

    for group in (("url=/",), ("url=/", "kind=a")):
        assert ask("get", "kinds", *group).err == ""
        assert ask("get", "late", *group).err.startswith("not complete: `counters backfill late`")
    assert ask("get", "pace", "url=/", "--last", "1h").err.startswith("not complete: `counters backfill pace`")
