"""Explanations at the command line: priced first, shown; and what an event counts in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, Packed, Percentiles, Sum, Threshold, Window
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from tests.unit.cli.in_process import Done, run

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=2)
CALL = Event("call", key=("customer", "id"))
PING = Event("ping", key=("at", "id"), packed=Packed(time="at", bucket=timedelta(minutes=10)))
USAGE = Aggregate("usage", CALL, by=("customer", "at:month"), calls=Count(), cost=Sum("cost"))
LARGE = Aggregate("large", CALL, by="customer", large=Count(), where=Attr("cost").ge(100))
PACE = Window("pace", CALL, by="customer", time="at", retention=timedelta(days=3))
COSTS = Percentiles("costs", CALL, by="customer", attribute="cost")
SITE = Aggregate("site", CALL, all=Count())
PINGS = Aggregate("pings", PING, by="at:hour", pings=Count())
PLAN = Threshold("plan", USAGE, at=[10], measure="calls")
NOVEMBER = ("customer=a", "at:month=2026-11")


@pytest.fixture
def counters() -> Iterator[CountersInMemory]:
    with counters_in_memory([USAGE, LARGE, PACE, SITE, COSTS, PINGS, PLAN], now=NOW, quarantine="keep") as counters:
        for number in range(3):
            counters.accept(CALL, {"customer": "a", "id": f"c{number}", "at": NOW.isoformat(), "cost": number})
        counters.accept(PING, {"at": NOW.isoformat(), "id": "p"})
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


def test_an_event_is_traced_to_its_groups_and_thresholds_and_to_what_leaves_it_out(counters: CountersInMemory) -> None:
    done = ask(counters, "explain", "call", "customer=a", "id=c1", "--json")
    assert done.code == 0
    counts = {one["name"]: one for one in done.document["counts"]}
    assert counts["usage"] == {
        "name": "usage",
        "group": {"customer": "a", "at:month": "2026-11"},
        "adds": {"calls": "1", "cost": "1"},
        "thresholds": "plan",
        "reason": "",
    }
    assert counts["large"]["reason"].startswith("`where` leaves it out, or it adds 0")
    assert counts["pace"]["group"] == {"customer": "a", "hour": "2026-11-20T12"}
    assert {name for name, one in counts.items() if one["group"]} == {"usage", "pace", "costs"}
    assert counts["site"]["adds"] == {"all": "1"}


def test_a_packed_event_is_traced_and_one_that_is_not_there_is_not(counters: CountersInMemory) -> None:
    done = ask(counters, "explain", "ping", f"at={NOW.isoformat()}", "id=p", "--json")
    assert [(one["name"], one["group"]) for one in done.document["counts"]] == [("pings", {"at:hour": "2026-11-20T12"})]
    missing = ask(counters, "explain", "call", "customer=a", "id=c9")
    assert missing.code == 1
    assert "there is no such event" in missing.err
