"""Each guard of members in stretches, units in pages and values in order alone, in the situation it is there for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import ActiveMembers, Event, Packed, Percentiles
from dynamodb_counters._items.derived_fields import LogBins
from dynamodb_counters._items.table_schema import PAGE_PREFIX
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from simulation.schedules.housekeeping import narrow_pages

DAY = timedelta(days=1)
VIEW = Event("view", key="id")
CALL = Event("call", key=("id", "at"), packed=Packed("at"))
LONGEST = 12
STRETCH = datetime(2026, 3, 8, tzinfo=UTC)
"""Where one begins: 57 of them, each 360 days long, are 20,520 days since 1970."""


def _pages(counters: CountersInMemory, name: str) -> list[dict[str, Any]]:
    scanned = counters.client.get_paginator("scan").paginate(TableName=counters.table_name)
    items = [item for page in scanned for item in page["Items"]]
    return [item for item in items if item["sk"]["S"].startswith(f"{PAGE_PREFIX}{name}#")]


def gaps_of(counters: CountersInMemory, users: ActiveMembers, day: datetime, **fields: str) -> dict[int, int]:
    """The members that are active on a day, by the days since they were active before."""
    found = counters.groups(users._parts[-1], {**fields, f"{users.time}:day": f"{day:%Y-%m-%d}"})
    return {int(group.values["gap"]): group["active"] for group in found if group["active"]}


@pytest.mark.parametrize("gap", [1, LONGEST - 1, LONGEST, LONGEST + 1])
def test_a_stretch_looks_back_for_less_than_the_longest_span(gap: int) -> None:
    users = ActiveMembers("users", VIEW, member="client", time="at", longest=LONGEST * DAY)
    with counters_in_memory([users], now=STRETCH + DAY) as counters:
        for at in (STRETCH - gap * DAY, STRETCH):
            counters.accept(VIEW, {"id": at.isoformat(), "at": at.isoformat(), "client": "c"})
        gaps = gaps_of(counters, users, STRETCH)
        held = [sum(name.startswith("=") for name in page) for page in _pages(counters, "users-members")]
    assert gaps == {min(gap, LONGEST): 1}
    assert sorted(held) == [1, 2 if gap < LONGEST else 1]


def test_a_member_that_is_active_on_many_days_keeps_one_page() -> None:
    users = ActiveMembers("users", VIEW, member="client", time="at", longest=LONGEST * DAY)
    with narrow_pages(2), counters_in_memory([users], now=STRETCH + 100 * DAY) as counters:
        for at in (STRETCH + number * DAY for number in range(100)):
            counters.accept(VIEW, {"id": at.isoformat(), "at": at.isoformat(), "client": "c"})
        assert len(_pages(counters, "users-members")) == 1
        gaps = [gaps_of(counters, users, STRETCH + number * DAY) for number in range(1, 100)]
    assert gaps == [{1: 1}] * 99


def test_a_unit_whose_page_has_split_is_read_whole() -> None:
    latency = Percentiles("latency", CALL, attribute="ms", error=0.001, time="at", precision=DAY)
    values = [Decimal(repr(round(1.004**number, 6))) for number in range(200)]
    events = [{"id": f"{n}", "at": (STRETCH + n % 2 * DAY).isoformat(), "ms": ms} for n, ms in enumerate(values)]
    with narrow_pages(2), counters_in_memory([latency], now=STRETCH + DAY) as counters:
        counters.accept_many(CALL, events).raise_for_rejected()
        found = counters.window(latency).series(STRETCH, STRETCH + 2 * DAY, step=DAY)
        assert len(_pages(counters, "latency")) > 2 * 16
    bins = LogBins(Decimal("0.001"))
    for day, one in enumerate(found):
        assert list(one.bins) == sorted({bins.value_of(bins.name_of(ms)) for ms in values[day::2]})
        assert one.count == 100
