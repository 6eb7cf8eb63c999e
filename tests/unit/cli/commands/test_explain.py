"""Explanations at the command line: priced first, shown, written to a file; and what an event counts in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Event, Packed, Sum, Threshold, Window
from dynamodb_counters._backfill.feeds import Feeds
from dynamodb_counters.cli.commands import explain as explaining
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from tests.unit.cli.in_process import Done, run

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CALL = Event("call", key=("customer", "id"))
PING = Event("ping", key=("at", "id"), packed=Packed(time="at", bucket=timedelta(minutes=10)))
USAGE = Aggregate("usage", CALL, by=("customer", "at:month"), calls=Count(), cost=Sum("cost"))
LARGE = Aggregate("large", CALL, by="customer", large=Count(), where=Attr("cost").ge(100))
PACE = Window("pace", CALL, by="customer", time="at", retention=timedelta(days=3))
SITE = Aggregate("site", CALL, all=Count())
PINGS = Aggregate("pings", PING, by="at:hour", pings=Count())
PLAN = Threshold("plan", USAGE, at=[10], measure="calls")
NOVEMBER = ("customer=a", "at:month=2026-11")


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountersInMemory]:
    with counters_in_memory([USAGE, LARGE, PACE, SITE, PINGS, PLAN], now=NOW) as counters:
        for number in range(3):
            counters.accept(CALL, {"customer": "a", "id": f"c{number}", "at": NOW.isoformat(), "cost": number})
        counters.accept(PING, {"at": NOW.isoformat(), "id": "p"})

        def feeds(*_: Any) -> Feeds:
            found: Feeds = counters._feeds(None)
            return found

        monkeypatch.setattr(explaining, "feeds_of", feeds)
        yield counters


def ask(counters: CountersInMemory, *arguments: str, **more: Any) -> Done:
    clients = {"dynamodbstreams": None}
    known: dict[str, Any] = {"client": counters.client, "clients": clients, "clock": counters.clock}
    return run(*arguments, "--table", counters.table_name, **known, **more)


def test_a_group_is_explained_by_its_events(counters: CountersInMemory) -> None:
    done = ask(counters, "explain", "usage", *NOVEMBER, "--json")
    assert (done.code, done.err) == (0, "Queries: 1, at a read unit per 4 KB\n")
    assert done.document["adds"] == {"calls": "3", "cost": "3"}
    assert [line["kind"] for line in done.document["lines"]] == ["counted"] * 3
    assert done.document["key"]["values"] == {"customer": "a", "at:month": "2026-11"}
    shown = ask(counters, "explain", "usage", *NOVEMBER, "--limit", "1").out
    assert "calls=3 cost=3: 3 counted" in shown
    assert "c0" in shown
    assert "c1" not in shown


def test_a_window_is_explained_over_a_span(counters: CountersInMemory) -> None:
    found = ask(counters, "explain", "pace", "customer=a", "--last", "1h", "--until", "2026-11-20T12:01Z", "--json")
    assert found.document["adds"] == {"total": "3"}
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
    assert "a Scan of the table, " in refused.err
    assert "read units ($0.00)" in refused.err
    assert ask(counters, "explain", "site").code == 2
    assert ask(counters, "explain", "site", "--yes", "--json").document["adds"] == {"all": "3"}


def test_a_file_has_all_lines(counters: CountersInMemory, tmp_path: Path) -> None:
    path = tmp_path / "usage.jsonl"
    assert ask(counters, "explain", "usage", *NOVEMBER, "--out", str(path), "--limit", "0").code == 0
    expected = "".join(counters.explain(USAGE, {"customer": "a", "at:month": "2026-11"}).file())
    assert path.read_bytes().decode() == expected
    assert ask(counters, "explain", "usage", *NOVEMBER, "--out", "usage.csv").code == 2


def test_an_event_is_traced_to_its_groups_and_thresholds_and_to_what_leaves_it_out(counters: CountersInMemory) -> None:
    done = ask(counters, "trace", "call", "customer=a", "id=c1", "--position", "--json")
    assert done.code == 0
    counts = {one["name"]: one for one in done.document["counts"]}
    assert counts["usage"] == {
        "name": "usage",
        "group": {"customer": "a", "at:month": "2026-11"},
        "adds": {"calls": "1", "cost": "1"},
        "thresholds": "plan",
        "reason": "",
    }
    assert counts["large"]["reason"] == "`where` leaves it out, or it adds 0"
    assert {name for name, one in counts.items() if one["group"]} == {"usage", "pace"}
    assert counts["site"]["adds"] == {"all": "1"}
    [record] = done.document["records"]
    assert record["at"] == "2026-11-20T12:00:00Z"


def test_a_packed_event_is_traced_and_one_that_is_not_there_is_not(counters: CountersInMemory) -> None:
    done = ask(counters, "trace", "ping", f"at={NOW.isoformat()}", "id=p", "--json")
    assert [(one["name"], one["group"]) for one in done.document["counts"]] == [("pings", {"at:hour": "2026-11-20T12"})]
    missing = ask(counters, "trace", "call", "customer=a", "id=c9")
    assert missing.code == 1
    assert "there is no such event" in missing.err
