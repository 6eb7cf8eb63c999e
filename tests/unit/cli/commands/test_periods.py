"""``counters window`` over periods and of several windows, ``counters close``, and counts that lack something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Event, Sum, Window
from dynamodb_counters.testing import CountersInMemory, counters_in_memory
from simulation.workbench import Workbench
from tests.unit.cli.in_process import Done, run

CALL = Event("call", key=("customer", "id"))
USAGE = Window("usage", CALL, by="customer", time="at", measure=Sum("cents"), longest=timedelta(days=366))
CALLS = Window("calls", CALL, by="customer", time="at", longest=timedelta(days=366))
SPENT = Aggregate("spent", CALL, by="customer", cents=Sum("cents"))
NOW = datetime(2026, 11, 3, tzinfo=UTC)


@pytest.fixture
def counters() -> Iterator[CountersInMemory]:
    with counters_in_memory([USAGE, CALLS, SPENT], now=NOW) as counters:
        for number, at in enumerate(("2026-10-05T10:00:00Z", "2026-10-31T23:30:00Z")):
            counters.accept(CALL, {"customer": "c1", "id": number, "at": at, "cents": 10 + number})
        yield counters


def _ask(counters: CountersInMemory, *arguments: str) -> Done:
    return run(*arguments, "--table", counters.table_name, client=counters.client, clock=counters.clock)


def test_several_windows_are_counted_at_once(counters: CountersInMemory) -> None:
    asked = ("window", "usage,calls", "customer=c1", "--period", "month", "--of", "2026-10", "--tz", "Europe/Berlin")
    document = _ask(counters, *asked, "--json").document
    assert [(one["window"], one["count"], one["total"]) for one in document["windows"]] == [
        ("usage", 10, 10),
        ("calls", 1, 1),
    ]
    shown = _ask(counters, *asked).out
    assert [line.split()[:3] for line in shown.splitlines() if "count" in line] == [
        ["usage:", "count", "10"],
        ["calls:", "count", "1"],
    ]
    assert shown.count("open") == 2


def test_a_closed_period_is_shown_with_its_time(counters: CountersInMemory) -> None:
    counters.window(USAGE, customer="c1").close("month", "2026-10")
    shown = _ask(counters, "window", "usage", "customer=c1", "--period", "month", "--of", "2026-10").out
    assert "closed at 2026-11-03 00:00:00 UTC" in shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--last", "1h", "--of", "2026-10"), "--of, --tz and --anchor are those of a period: add --period"),
        (("--period", "month", "--last", "1h"), "--period is a span of its own"),
        (("--period", "month", "--since", "2026-10-01"), "--period is a span of its own"),
        (("--period", "month", "--compare"), "--period is a span of its own"),
        (("--last", "1h", "--tz", "Europe/Berlin"), "--of, --tz and --anchor are those of a period: add --period"),
        (("--last", "1h", "--anchor", "15"), "--of, --tz and --anchor are those of a period: add --period"),
        (("--period", "day", "--anchor", "15"), "invalid anchor=15: expected 1 to 31 of months, else 1"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    counters: CountersInMemory, options: tuple[str, ...], said: str
) -> None:
    done = _ask(counters, "window", "usage", "customer=c1", *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("close", "usage"), "name one period: day=…, week=…, month=…, year=…"),
        (("close", "usage", "month=2026-10", "day=2026-10-01"), "name one period"),
        (("close", "usage", "month=2026-10", "month=2026-09"), "the field 'month' is given twice"),
        (("close", "usage", "month=2026-10", "plan=free"), "there is no field 'plan'"),
        (("close", "usage", "2026-10"), "'2026-10' is no field=value"),
        (("close", "spent", "month=2026-10"), "no window 'spent' is declared, but it is of the kind aggregate"),
        (("get", "usage", "customer=c1"), "no aggregate 'usage' is declared, but it is of the kind window"),
        (("close", "usage", "month=2026-11", "--yes"), "invalid month='2026-11': expected one that has ended"),
    ],
)
def test_a_refusal_says_what_is_wrong(counters: CountersInMemory, arguments: tuple[str, ...], said: str) -> None:
    done = _ask(counters, *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_an_export_shows_on_a_terminal_what_would_steer_it(counters: CountersInMemory) -> None:
    customer = "\x1b[2J,\u2028=1"
    counters.accept(CALL, {"customer": customer, "id": 9, "at": "2026-10-05T10:00:00Z", "cents": 1})
    asked = ("close", "usage", "month=2026-10", "--dry-run", "--export", "csv", "--table", counters.table_name)
    outside: dict[str, Any] = {"client": counters.client, "clock": counters.clock}
    [piped, shown] = [run(*asked, terminal=is_shown, **outside).out for is_shown in (False, True)]
    assert customer in piped
    assert "\x1b[2J" not in shown
    assert r"\x1b[2J,\u2028=1" in shown
    assert len(piped.split("\n")) == len(shown.split("\n")) == 4


@pytest.mark.parametrize("options", [(), ("--export", "jsonl")])
def test_groups_whose_keys_are_hashed_are_left_out_and_counted(
    counters: CountersInMemory, options: tuple[str, ...]
) -> None:
    long = "x" * 3000
    counters.accept(CALL, {"customer": long, "id": 9, "at": "2026-10-05T10:00:00Z", "cents": 1})
    done = _ask(counters, "close", "usage", "month=2026-10", "--yes", *options)
    assert done.code == 1
    assert "c1" in done.out
    assert "left out: 1 group(s) with keys too long to show their fields; close each by its fields" in done.err
    assert _ask(counters, "close", "usage", "month=2026-10", f"customer={long}", "--yes").code == 0
    assert counters.window(USAGE, customer=long).closed()[0].total == 1


def test_a_read_says_which_counts_lack_something() -> None:
    kinds = Aggregate("kinds", CALL, by=("customer", "kind"), cents=Sum("cents"))
    bench = Workbench([kinds])
    bench.aggregator.handle({})
    dear = replace(kinds, where=Attr("cents").ge(100))
    late = replace(kinds, name="late", pk="LATE#{customer}", sk="KIND#{kind}")
    bench.deploy([dear, late, replace(CALLS, name="pace")], as_declared=True)

    def ask(*arguments: str) -> Done:
        client: Any = bench.table
        return run(*arguments, "--table", bench.table.name, client=client, clock=bench.clock)

    for group in (("customer=c1",), ("customer=c1", "kind=a")):
        assert ask("get", "kinds", *group).err.startswith("by the definition before: `counters backfill kinds`")
        assert ask("get", "late", *group).err.startswith("not complete: `counters backfill late`")
    assert "no: backfill it" in ask("window", "pace", "customer=c1", "--last", "1h").out
