"""Explanations at the command line: priced first, then shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Percentiles, Sum, Window
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from tests.unit.cli.in_process import Done, run

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=2)
CALL = Event("call", key=("customer", "id"))
USAGE = Aggregate("usage", CALL, by=("customer", "at:month"), calls=Count(), cost=Sum("cost"))
PACE = Window("pace", CALL, by="customer", time="at", retention=timedelta(days=3))
COSTS = Percentiles("costs", CALL, by="customer", attribute="cost")
SITE = Aggregate("site", CALL, all=Count())
NOVEMBER = ("customer=a", "at:month=2026-11")


@pytest.fixture
def counters() -> Iterator[CountersInMemory]:
    with counters_in_memory([USAGE, PACE, SITE, COSTS], now=NOW, quarantine="keep") as counters:
        for number in range(3):
            counters.accept(CALL, {"customer": "a", "id": f"c{number}", "at": NOW.isoformat(), "cost": number})
        yield counters


def ask(counters: CountersInMemory, *arguments: str, **more: Any) -> Done:
    known: dict[str, Any] = {"client": counters.client, "clock": counters.clock}
    return run(*arguments, "--table", counters.table_name, **known, **more)


def test_a_group_is_explained_by_its_events(counters: CountersInMemory) -> None:
    done = ask(counters, "explain", "usage", *NOVEMBER, "--json")
    assert (done.code, done.err) == (0, "Queries: 1, at a read unit per 4 KB\n")
    assert (done.document["numbers"], done.document["difference"]) == ({"calls": "3", "cost": "3"}, {})
    assert (done.document["count"], len(done.document["lines"])) == (3, 3)
    shown = ask(counters, "explain", "usage", *NOVEMBER, "--limit", "1").out
    assert "calls=3 cost=3: 3 lines, 1 of them shown" in shown
    assert "c0" in shown
    assert "c1" not in shown


def test_what_differs_comes_first_and_fields_of_no_reader_stay_inside(counters: CountersInMemory) -> None:
    counters.accept_many(CALL, [{"customer": "a", "id": "c9", "at": LATER.isoformat(), "cost": 692}])
    done = ask(counters, "explain", "pace", "customer=a", "--since", NOW.isoformat(), "--until", "2026-11-20T15:00Z")
    assert done.code == 1
    _, _, first, *_, last = done.out.splitlines()
    assert "hour=2026-11-20T14" in first
    assert "1 entry of the quarantine waits" in first
    assert last == "total=3: 4 lines; differs by total=-1"
    assert "_tier" not in done.out
    bins = ask(counters, "explain", "costs", "customer=a")
    assert (bins.code, ":log" in bins.out) == (0, False)
    assert "values=4: 4 lines" in bins.out


def test_a_window_is_explained_over_a_span(counters: CountersInMemory) -> None:
    found = ask(counters, "explain", "pace", "customer=a", "--last", "1h", "--until", "2026-11-20T12:01Z", "--json")
    assert found.document["numbers"] == {"total": "3"}
    done = ask(counters, "explain", "pace", "customer=a")
    assert done.code == 2
    assert "a start and an end" in done.err


def test_a_scan_is_priced_and_asked_for(counters: CountersInMemory) -> None:
    asked = list[str]()

    def refuse(question: str) -> bool:
        asked.append(question)
        return False

    refused = ask(counters, "explain", "site", answer=refuse)
    assert (refused.code, asked) == (1, ["Read the whole table?"])
    assert re.search(r"a Scan of the table, \d+ read units\n", refused.err)
    assert ask(counters, "explain", "site").code == 2
    assert ask(counters, "explain", "site", "--yes", "--json").document["numbers"] == {"all": "3"}
