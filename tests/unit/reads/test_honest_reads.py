"""Reads of what no deployment counts, and of texts that no group has, are refused; the others say what they lack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attribute, Count, Counter, Event, InvalidArgumentError, UncountedError, Window
from simulation.counters_in_memory import counters_in_memory
from simulation.world import World

STATUS = Attribute(int, minimum=100)
ATTRIBUTES = {"customer": str, "status": STATUS, "price": Decimal, "at": datetime, "due": date, "ms": int}
CALL = Event("call", key=("customer", "at"), attributes=ATTRIBUTES)
CALLED = {"customer": "c1", "status": 200, "price": 1, "at": "2026-11-20T05:00:00Z", "due": "2026-11-20", "ms": 1}
CALLS = Aggregate("calls", CALL, by="customer")
DAILY = Aggregate("daily", CALL, by=("customer", "at:day"))
TYPED = Aggregate("typed", CALL, by=("status", "price", "due", "at:hour"))
OF_DAILY = Aggregate("of_daily", DAILY, by=("customer", "at:day"), n=Count())
SEATS = Counter("seats", by=("show", "at:day"))
SITE = Aggregate("site", CALL, calls=Count())
RECENT = Window("recent", CALL, by="customer", time="at")
C1 = {"customer": "c1"}


def _at(hour: int) -> datetime:
    return datetime(2026, 11, 20, hour, tzinfo=UTC)


def test_a_declaration_is_readable_as_soon_as_it_is_deployed_and_counts_on_when_it_no_longer_is() -> None:
    bench = World(SITE)
    bench.counters.accept(CALL, CALLED)
    bench.deliver_all()
    with pytest.raises(UncountedError):
        bench.counters.get(CALLS, C1)

    bench.deploy(SITE, CALLS)
    group = bench.counters.get(CALLS, C1)
    assert (group["calls"], group.complete) == (0, False)

    bench.deploy(CALLS)
    group = bench.counters.get(SITE)
    assert (group["calls"], group.complete) == (1, True)


def test_a_counter_is_complete_as_soon_as_it_is_deployed() -> None:
    bench = World(SITE)
    a_day = {"show": "a", "at:day": "2026-11-20"}
    bench.deploy(SITE, SEATS)
    bench.counters.increment(SEATS, a_day, amount=2)
    group = bench.counters.get(SEATS, a_day)
    assert (group["seats"], group.complete) == (2, True)


def test_a_table_that_no_deployment_counts_is_incomplete() -> None:
    bench = World(SITE, RECENT, founds=False)
    bench.counters.accept(CALL, CALLED)
    group = bench.counters.get(SITE)
    assert (group["calls"], group.complete) == (0, False)
    assert not bench.counters.window(RECENT, C1).last(timedelta(hours=1)).complete

    bench.deliver_all()
    bench.clock.advance(60)
    group = bench.counters.get(SITE)
    assert (group["calls"], group.complete) == (1, True)
    assert bench.counters.window(RECENT, C1).last(timedelta(hours=1)).complete


@pytest.mark.parametrize(
    ("aggregate", "values", "refused"),
    [
        (DAILY, {**C1, "at:day": "01.01.2026"}, "invalid at:day='01.01.2026': expected a UTC day such as '2026-11-20'"),
        (DAILY, {**C1, "at:day": "2026-1"}, "invalid at:day='2026-1': expected a UTC day such as '2026-11-20'"),
        (DAILY, {**C1, "at:day": _at(5)}, "invalid at:day='2026-11-20T05:00:00Z': expected a UTC day such as"),
        (OF_DAILY, {**C1, "at:day": "20261120"}, "invalid at:day='20261120': expected a UTC day such as '2026-11-20'"),
        (SEATS, {"show": "a", "at:day": "2026-1"}, "invalid at:day='2026-1': expected a UTC day such as '2026-11-20'"),
        (TYPED, {"at:hour": "2026-11-20"}, "invalid at:hour='2026-11-20': expected a UTC hour such as '2026-11-20T00'"),
        (TYPED, {"status": "5.1"}, "invalid status='5.1': expected a whole number"),
        (TYPED, {"status": "ok"}, "invalid status='ok': expected a whole number"),
        (TYPED, {"price": "1,50"}, "invalid price='1,50': expected a number"),
        (TYPED, {"due": "2026-1"}, "invalid due='2026-1': expected an ISO 8601 date such as '2026-11-20'"),
    ],
)
def test_a_text_that_no_group_has_is_refused(aggregate: Aggregate, values: dict[str, Any], refused: str) -> None:
    with counters_in_memory([DAILY, TYPED, OF_DAILY, SEATS]) as counters:
        calls: list[Callable[..., object]] = [counters.get]
        for call in calls + ([counters.increment, counters.reset] if aggregate is SEATS else []):
            with pytest.raises(InvalidArgumentError) as found:
                call(aggregate, values)
            assert str(found.value).startswith(refused)


def test_values_of_the_right_types_are_taken_in_every_form() -> None:
    with counters_in_memory([DAILY, TYPED]) as counters:
        for at in ("2026-11-20", date(2026, 11, 20)):
            assert counters.get(DAILY, {**C1, "at:day": at})["daily"] == 0
        # A group may be older than the limit that its status is below.
        counters.accept(replace(CALL, attributes=None), {**CALLED, "status": 5, "price": Decimal("1.50")})
        typed = {"status": 5.0, "price": Decimal("1.50"), "due": date(2026, 11, 20), "at:hour": "2026-11-20T05"}
        assert counters.get(TYPED, typed)["typed"] == 1
        for status, price, due in (("5", "1.5", "20261120"), ("5.0", "1.50", "2026-W47-5")):
            assert counters.get(TYPED, {**typed, "status": status, "price": price, "due": due})["typed"] == 1
