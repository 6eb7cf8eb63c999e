"""Reads beyond docs/cli.md: crossings of thresholds, explanations of a span, and counts that lack something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Extremes, Ranks, Sum, Threshold, Window
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from simulation.world import World
from tests.unit.cli.in_process import Done, mistake, run, run_on

VIEW = Event("view", key=("url", "time", "client"))
PACE = Window("pace", VIEW, by="url", time="time", measure=Sum("ms"))
VIEWS = Aggregate("views", VIEW, by="url", n=Count())
KINDS = Aggregate("kinds", VIEW, by=("url", "kind"), ms=Sum("ms"))
BUSY = Threshold("busy", VIEWS, at=[2, 3], direction="both")
FIRST = Threshold("first", VIEWS, at=[1, 2], once=True)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)


DECLARED = (
    *(PACE, VIEWS, Aggregate("all", VIEW, n=Count()), Extremes("slowest", VIEW, by="url", attribute="ms")),
    Ranks("board", VIEWS, score="n", least=0, most=999),
)


@pytest.fixture(scope="module")
def counters() -> Iterator[CountersInMemory]:
    with counters_in_memory([*DECLARED, BUSY, FIRST], now=NOW - DAY) as counters:

        def view(url: str, clients: str) -> None:
            time = counters.clock.now.isoformat()
            views = ({"url": url, "time": time, "ms": ms, "client": client} for ms, client in enumerate(clients))
            counters.accept_many(VIEW, views)

        view("/", "abcdefghijkl")
        counters.clock.advance(DAY - timedelta(hours=1))
        view("/b", "abc")
        counters.retract(VIEW, {"url": "/b", "time": counters.clock.now.isoformat(), "client": "a"})
        counters.clock.advance(timedelta(hours=1))
        yield counters


def ask(counters: CountersInMemory, *arguments: str) -> Done:
    return run(*arguments, "--table", counters.table_name, client=counters.client, clock=counters.clock)


def test_crossings_of_a_threshold_are_listed_as_its_events(counters: CountersInMemory) -> None:
    def fired(*arguments: str) -> list[tuple[Any, ...]]:
        listed = ask(counters, "events", *arguments, "--json").document["events"]
        return [(event["group"]["url"], event["direction"], event["level"], event["new"]) for event in listed]

    early, late = [("/", "up", 2, 2), ("/", "up", 3, 3)], [("/b", "up", 2, 2), ("/b", "up", 3, 3), ("/b", "down", 3, 2)]
    assert fired("busy") == early + late
    until = ("--until", "2026-11-20T00:00Z")
    assert (fired("busy", "--since", until[1]), fired("busy", *until)) == (late, early)
    assert (len(fired("first")), len(fired("first", *until))) == (4, 2)
    assert "expected --since and --until alone" in mistake(ask(counters, "events", "busy", "--limit", "1"))


def test_all_pages_of_what_has_none_are_one_page(counters: CountersInMemory) -> None:
    entries = ask(counters, "get", "slowest", "url=/", "--order", "largest", "--all", "--json").document["largest"]
    assert [entry["value"] for entry in entries] == [*range(11, 1, -1)]


def test_ranks_are_shown_line_by_line(counters: CountersInMemory) -> None:
    for asked in (["url=/b"], ["--score", "2"], ["--rank=2"], ["--rank", "1", "--order", "smallest"]):
        rank = 1 if "smallest" in asked else 2
        done = ask(counters, "get", "board", *asked)
        lines = [f"rank   {rank}", "of     2", "score  2", "ties   1", "as_of  2026-11-20T12:00:00+00:00"]
        assert (done.code, done.out.splitlines()) == (0, lines)
    assert ask(counters, "get", "board", "--low", "1", "--high=20").out.split()[:2] == ["count", "2"]
    assert "expected one of: fields of a member" in mistake(ask(counters, "get", "board"))
    # The digits before are groups as others.
    assert ask(counters, "get", "board-1", "--json").document["groups"]


def test_a_group_is_explained_by_its_events_of_a_span(counters: CountersInMemory) -> None:
    done = ask(counters, "explain", "views", "url=/", "--json")
    assert (done.code, done.document["numbers"], len(done.document["lines"])) == (0, {"n": 12}, 12)
    span = ("--since", "2026-11-19T00:00+02:00", "--until", "2026-11-20T00:00")
    assert ask(counters, "explain", "pace", "url=/", *span, "--json").document["numbers"] == {"total": 66}
    assert "expected True, for a Scan that takes" in mistake(ask(counters, "explain", "all"))
    assert ask(counters, "explain", "all", "--scan", "--json").document["numbers"] == {"n": 14}


def test_a_read_says_what_its_counts_lack() -> None:
    world = World(KINDS)
    world.counters.accept(VIEW, {"url": "/", "time": NOW.isoformat(), "client": "c", "kind": "a", "ms": 1})
    done = run_on(world, "explain", "kinds", "url=/", "kind=a")
    assert done.code == 1
    assert "0: 1 lines\ndiffers by ms=-1: changes meanwhile, records on their way" in done.out
    world.deploy(KINDS, replace(KINDS, name="late", pk="LATE#{url}", sk="KIND#{kind}"), PACE)
    for group in (("url=/",), ("url=/", "kind=a")):
        assert run_on(world, "get", "kinds", *group).err == ""
        assert run_on(world, "get", "late", *group).err.startswith("not complete: `counters backfill late`")
    pace = run_on(world, "get", "pace", "url=/", "--last", "1h")
    assert pace.err.startswith("not complete: `counters backfill pace`")
