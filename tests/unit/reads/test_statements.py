"""Statements of billing periods: which can be closed, and what stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Attr, Event, IncompleteError, InvalidArgumentError, Sum, Window
from dynamodb_counters._backfill.dropping import Dropping
from dynamodb_counters.cli.show.item_words import decoded
from dynamodb_counters.testing import CountersInMemory, counters_in_memory
from simulation.workbench import Workbench
from tests.unit.cli.in_process import run

ATTRIBUTES = {"customer": str, "id": int, "at": datetime, "cents": int}
CALL = Event("call", key=("customer", "id"), attributes=ATTRIBUTES)
USAGE = Window("usage", CALL, by="customer", time="at", measure=Sum("cents"), longest=timedelta(days=366))
DAILY = Window("daily", CALL, by="customer", time="at", precision=timedelta(hours=1))
SHORT = Window("short", CALL, by="customer", time="at", retention=timedelta(days=90))


def _at(month: int, day: int, hour: int = 0) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=UTC)


@pytest.fixture
def counters() -> Any:
    with counters_in_memory([USAGE, DAILY, SHORT], now=_at(11, 3)) as counters:
        calls = [(_at(9, 5), 100), (_at(9, 30, 23), 7), (_at(10, 1, 3), 20), (_at(11, 2), 1)]
        for number, (at, cents) in enumerate(calls):
            counters.accept(CALL, {"customer": "c1", "id": number, "at": at, "cents": cents})
        yield counters


def test_a_late_event_is_an_adjustment_of_the_next_period(counters: CountersInMemory) -> None:
    usage = counters.window(USAGE, customer="c1")
    first = usage.close("month", "2026-09")
    assert (first.count, first.adjustment, first.total, first.closed_at) == (107, 0, 107, _at(11, 3))

    counters.accept(CALL, {"customer": "c1", "id": 10, "at": _at(9, 6), "cents": 5})
    counters.retract(CALL, {"customer": "c1", "id": 0})
    assert usage.statement("month", "2026-09") == usage.close("month", "2026-09") == first
    october = usage.statement("month", "2026-10")
    assert (october.count, october.adjustment, october.total, october.closed_at) == (20, -95, -75, None)

    usage.close("month", "2026-10")
    counters.accept(CALL, {"customer": "c1", "id": 11, "at": _at(10, 7), "cents": 3})
    november = usage.statement("month")
    assert (november.count, november.adjustment) == (1, 3)
    assert [one.total for one in usage.closed()] == [107, -75]


def test_a_month_begins_on_its_anchor(counters: CountersInMemory) -> None:
    usage = counters.window(USAGE, customer="c1")
    assert usage.statement("month", "2026-09", anchor=15).count == 27
    assert usage.calendar("month", anchor=2).count == 1
    assert usage.calendar("month", anchor=3).count == 0
    counts = usage.series(_at(8, 31), _at(11, 3), step="month", anchor=30)
    assert [(one.start.day, one.count) for one in counts] == [(31, 100), (30, 27), (30, 1)]


@pytest.mark.parametrize(
    ("close", "message"),
    [
        (
            lambda usage: usage.close("month", "2026-11"),
            "invalid month='2026-11': expected one that has ended",
        ),
        (lambda usage: usage.close("month", "2026-9"), "invalid month='2026-9': expected a month such as '2026-10'"),
        (lambda usage: usage.close("month", "2026-13"), "invalid month='2026-13': expected a month such as '2026-10'"),
        (
            lambda usage: usage.close("hour", "2026"),
            "invalid period='hour': expected one of 'day', 'week', 'month'",
        ),
        (lambda usage: usage.close("year", "2025", anchor=2), "invalid anchor=2: expected 1 to 31 of months, else 1"),
        (lambda usage: usage.close("month", "2026-09", "Nowhere"), "invalid tz='Nowhere': expected an IANA time zone"),
    ],
)
def test_a_period_that_cannot_be_closed_is_refused(
    counters: CountersInMemory, close: Callable[[Any], object], message: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        close(counters.window(USAGE, customer="c1"))
    assert str(refused.value).startswith(message)
    assert counters.window(USAGE, customer="c1").closed() == []


def test_periods_are_closed_one_after_the_other(counters: CountersInMemory) -> None:
    usage = counters.window(USAGE, customer="c1")
    usage.close("month", "2026-08")
    for period, of in (("month", "2026-10"), ("month", "2026-07"), ("week", "2026-W36"), ("day", "2026-08-01")):
        with pytest.raises(InvalidArgumentError, match="the one that follows the last closed one, from 2026-09-01"):
            usage.close(period, of)  # type: ignore[arg-type]
    assert usage.statement("month", "2026-10").adjustment == 0


def test_a_window_that_drops_buckets_or_cuts_days_is_not_closed(counters: CountersInMemory) -> None:
    with pytest.raises(InvalidArgumentError, match="invalid window='short': expected one with retention=None"):
        counters.window(SHORT, customer="c1").close("month", "2026-10")
    with pytest.raises(InvalidArgumentError, match="invalid tz='Asia/Kathmandu': expected a time zone whose days"):
        counters.window(DAILY, customer="c1").close("day", "2026-10-03", "Asia/Kathmandu")


def test_a_window_that_waits_for_its_backfill_is_not_closed() -> None:
    bench = Workbench([SHORT])
    bench.clock.now = _at(11, 3).timestamp()
    bench.aggregator.handle({})
    bench.deploy([SHORT, USAGE], as_declared=True)
    with pytest.raises(IncompleteError, match="'usage' does not count everything yet: its periods cannot be closed"):
        bench.counters.window(USAGE, customer="c1").close("month", "2026-10")


def test_a_window_whose_buckets_are_still_dropped_is_not_closed() -> None:
    bench = Workbench([replace(USAGE, retention=timedelta(days=400))])
    bench.aggregator.handle({})
    bench.deploy([USAGE], as_declared=True)
    with pytest.raises(InvalidArgumentError, match="invalid window='usage': expected one with retention=None"):
        bench.counters.window(USAGE, customer="c1").close("month", "2026-10")


def test_closed_periods_stand_when_the_definition_changes() -> None:
    bench = Workbench([USAGE])
    bench.clock.now = _at(11, 3).timestamp()
    bench.counters.accept(CALL, {"customer": "c1", "id": 1, "at": _at(10, 5), "cents": 100})
    bench.deliver_all()
    closed = bench.counters.window(USAGE, customer="c1").close("month", "2026-10")
    bench.deploy([replace(USAGE, where=Attr("cents").ge(500))], as_declared=True)
    assert bench.counters.window(USAGE, customer="c1").close("month", "2026-10") == closed
    bench.clock.advance(30 * 86_400)
    changed = replace(USAGE, where=Attr("cents").ge(500))
    assert not bench.counters.window(changed, customer="c1").statement("month", "2026-11").as_declared


def test_the_command_closes_all_groups(counters: CountersInMemory) -> None:
    counters.accept(CALL, {"customer": "c 2", "id": 1, "at": _at(10, 31, 23), "cents": 9})
    arguments = ("--tz", "Europe/Berlin", "--table", counters.table_name)

    def close(*more: str, **outside: Any) -> Any:
        return run("close", "usage", *more, *arguments, client=counters.client, clock=counters.clock, **outside)

    assert close("month=2026-10").code == 2
    assert close("month=2026-10", answer=lambda _: False).code == 1
    assert not counters.window(USAGE, customer="c1").closed()
    done = close("month=2026-10", "--yes", "--export", "csv")
    assert done.out.splitlines() == [
        "customer,count,adjustment,total,start,end,closed_at",
        "c 2,0,0,0,2026-09-30T22:00:00Z,2026-10-31T23:00:00Z,2026-11-03T00:00:00Z",
        "c1,27,0,27,2026-09-30T22:00:00Z,2026-10-31T23:00:00Z,2026-11-03T00:00:00Z",
    ]
    assert close("month=2026-10", "--yes").out.split()[:3] == ["customer", "count", "adjustment"]
    assert close("month=2026-10", "customer=c1", "--dry-run", "--export", "csv", terminal=True).out.count("\n") == 2
    assert close("customer=c1", "month=2026-10", "--yes").code == 0
    assert "name one period" in close("customer=c1", "--yes").err
    assert close("hour=2026", "--yes").code == 2


def test_a_closed_period_is_decoded_in_words(counters: CountersInMemory) -> None:
    counters.window(USAGE, customer="c1").close("month", "2026-10")
    items = counters.client.scan(TableName=counters.table_name)["Items"]
    [item] = [item for item in items if "CLOSED#" in item["sk"]["S"]]
    assert decoded(item).lines == [
        "a closed period of the window 'usage', group call#c1: 2026-10-01 00:00:00 UTC to 2026-11-01 00:00:00 UTC",
        "it counted 20, and 0 more of the closed periods before it",
    ]


def test_a_window_that_is_dropped_loses_its_closed_periods() -> None:
    bench = Workbench([USAGE, SHORT])
    bench.clock.now = _at(11, 3).timestamp()
    bench.aggregator.handle({})
    for window, customer in ((USAGE, "c1"), (USAGE, "c2")):
        bench.counters.window(window, customer=customer).close("month", "2026-10")
    bench.deploy([SHORT], as_declared=True)
    bench.clock.advance(4 * 86_400)
    dropping = Dropping(table=bench.store, now=bench.clock, names=["usage"])
    assert [*dropping.steps()]
    assert sum(dropping.dropped.values()) == 2
    assert not [item for item in bench.table.items() if "CLOSED#" in item["sk"]["S"]]
