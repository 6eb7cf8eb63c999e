"""Explanations at the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import ActiveMembers, Aggregate, Count, Event, Percentiles, Sum, Window
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from tests.unit.cli.in_process import Done, run

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=2)
CALL = Event("call", key=("customer", "id"))
USAGE = Aggregate("usage", CALL, by=("customer", "at:month"), calls=Count(), cost=Sum("cost"))
PACE = Window("pace", CALL, by="customer", time="at", retention=timedelta(days=3))
COSTS = Percentiles("costs", CALL, by="customer", attribute="cost")
USERS = ActiveMembers("users", CALL, by="customer", member="id", time="at")
SITE = Aggregate("site", CALL, all=Count())
NOVEMBER = ("customer=a", "at:month=2026-11")


@pytest.fixture
def counters() -> Iterator[CountersInMemory]:
    with counters_in_memory([USAGE, PACE, SITE, COSTS, USERS], now=NOW, quarantine="keep") as counters:
        for number in range(3):
            counters.accept(CALL, {"customer": "a", "id": f"c{number}", "at": NOW.isoformat(), "cost": number})
        yield counters


def ask(counters: CountersInMemory, *arguments: str, **more: Any) -> Done:
    known: dict[str, Any] = {"client": counters.client, "clock": counters.clock}
    return run(*arguments, "--table", counters.table_name, **known, **more)


def test_a_group_is_explained_by_its_events(counters: CountersInMemory) -> None:
    done = ask(counters, "explain", "usage", *NOVEMBER, "--json")
    assert (done.code, done.err) == (0, "")
    assert (done.document["numbers"], done.document["difference"]) == ({"calls": 3, "cost": 3}, {})
    assert (done.document["count"], len(done.document["lines"])) == (3, 3)
    shown = ask(counters, "explain", "usage", *NOVEMBER, "--limit", "1").out
    assert "calls=3 cost=3: 3 lines, 1 of them shown" in shown
    assert "c0" in shown
    assert "c1" not in shown


def test_what_differs_comes_last(counters: CountersInMemory) -> None:
    counters.accept_many(CALL, [{"customer": "a", "id": "c9", "at": LATER.isoformat(), "cost": 692}])
    counters.clock.advance(timedelta(hours=3))
    done = ask(counters, "explain", "pace", "customer=a", "--since", NOW.isoformat(), "--until", "2026-11-20T15:00Z")
    assert done.code == 1
    assert "total=3: 4 lines\ndiffers by total=-1: records on their way" in done.out


def test_a_group_of_bins_is_explained_as_a_whole_and_over_no_span(counters: CountersInMemory) -> None:
    done = ask(counters, "explain", "costs", "customer=a")
    assert (done.code, ":log" in done.out) == (0, False)
    assert "values=3: 3 lines" in done.out
    refused = ask(counters, "explain", "users", "customer=a", "--last", "1h")
    assert (refused.code, "invalid last='1:00:00': expected None: 'users' is no Window" in refused.err) == (2, True)


def test_a_window_is_explained_over_the_span_that_get_counts(counters: CountersInMemory) -> None:
    found = ask(counters, "explain", "pace", "customer=a", "--last", "1h", "--until", "2026-11-20T12:01Z", "--json")
    assert found.document["numbers"] == {"total": 3}
    last = ask(counters, "explain", "pace", "customer=a", "--json")
    assert last.document["numbers"] == {"total": ask(counters, "get", "pace", "customer=a", "--json").document["count"]}


def test_a_scan_is_refused_with_its_price_unless_it_is_asked_for(counters: CountersInMemory) -> None:
    refused = ask(counters, "explain", "site")
    assert refused.code == 2
    assert re.search(r"invalid scan=False: expected True, for a Scan that takes \d+ read units\n", refused.err)
    assert ask(counters, "explain", "site", "--scan", "--json").document["numbers"] == {"all": 3}


def test_a_group_without_all_of_its_fields_is_refused(counters: CountersInMemory) -> None:
    refused = ask(counters, "explain", "usage", "customer=a")
    assert (refused.code, "invalid at:month=None: expected a value for" in refused.err) == (2, True)
