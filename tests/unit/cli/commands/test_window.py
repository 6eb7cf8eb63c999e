"""``counters get`` of a window over a month and of several windows, and counts that lack something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Event, Sum, Window
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
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


def test_a_month_of_another_zone_is_counted(counters: CountersInMemory) -> None:
    october = ("--since", "2026-10-01T00:00+02:00", "--until", "2026-11-01T00:00+01:00")
    for name, count in (("usage", 10), ("calls", 1)):
        asked = ("get", name, "customer=c1", *october)
        document = _ask(counters, *asked, "--json").document
        assert (document["window"], document["count"], document["end"]) == (name, count, "2026-10-31T23:00:00+00:00")
        assert _ask(counters, *asked).out.splitlines()[0].split() == ["count", str(count)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("get", "spent", "customer=c1", "--last", "1h"), "invalid last='1h': expected no parameters but those of"),
        (("get", "usage", "plan=free", "--last", "1h"), "invalid plan='free': expected no parameters but those of"),
        (("get", "usage,calls", "customer=c1", "--last", "1h"), "no aggregate or window 'usage,calls' is declared"),
    ],
)
def test_a_refusal_says_what_is_wrong(counters: CountersInMemory, arguments: tuple[str, ...], said: str) -> None:
    done = _ask(counters, *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_read_says_which_counts_lack_something() -> None:
    kinds = Aggregate("kinds", CALL, by=("customer", "kind"), cents=Sum("cents"))
    bench = Workbench([kinds])
    bench.aggregator.handle({})
    late = replace(kinds, name="late", pk="LATE#{customer}", sk="KIND#{kind}")
    bench.deploy([kinds, late, replace(CALLS, name="pace")])

    def ask(*arguments: str) -> Done:
        client: Any = bench.table
        return run(*arguments, "--table", bench.table.name, client=client, clock=bench.clock)

    for group in (("customer=c1",), ("customer=c1", "kind=a")):
        assert ask("get", "kinds", *group).err == ""
        assert ask("get", "late", *group).err.startswith("not complete: `counters backfill late`")
    assert ask("get", "pace", "customer=c1", "--last", "1h").err.startswith("not complete: `counters backfill pace`")
