"""Members that expire, in memory: alike however they are delivered, and as a month goes by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamodb_counters import Distinct, Event, Group, Packed
from simulation.counters_in_memory import CountersInMemory, Faults, counters_in_memory
from simulation.night import scaled

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
VIEW = Event("view", pk="VIEW#{id}", sk="T#{at}")
PACKED = Event("hit", pk="HIT#{id}", sk="T#{at}", packed=Packed("at", future_tolerance=None))
DAYS = [f"2026-03-{day:02d}" for day in range(1, 12)]


def _visitors(source: Event) -> Distinct:
    return Distinct("visitors", source, pk="SITE", sk="V#{at:day}", member="client", retention=timedelta(days=3))


@contextmanager
def _counted(source: Event, seed: int = 0, faults: Faults | None = None) -> Iterator[CountersInMemory]:
    with counters_in_memory([_visitors(source)], now=NOW, seed=seed, faults=faults) as counters:
        yield counters


def _view(number: int, client: str, day: str) -> dict[str, Any]:
    return {"id": str(number), "client": client, "at": f"{day}T10:00:00Z"}


def _numbers(counters: CountersInMemory, source: Event) -> dict[str, int]:
    found = {day: counters.get(_visitors(source), {"at:day": day})["distinct"] for day in DAYS}
    return {day: number for day, number in found.items() if number}


def _members(counters: CountersInMemory, source: Event) -> list[Group]:
    return [*counters.groups(_visitors(source)._parts[0])]


@settings(max_examples=scaled(10))
@given(
    st.lists(st.tuples(st.sampled_from(["ann", "bob", "eve"]), st.sampled_from(DAYS)), max_size=12),
    st.sampled_from([VIEW, PACKED]),
    st.sampled_from([None, Faults(crash=0.3, redeliver=0.3)]),
    st.integers(0, 99),
)
def test_members_of_days_that_have_not_expired_count(
    views: list[tuple[str, str]], source: Event, faults: Faults | None, seed: int
) -> None:
    with _counted(source, seed, faults) as counters:
        for number, (client, day) in enumerate(views):
            counters.accept(source, _view(number, client, day))
        clients = {day: {client for client, its_day in views if its_day == day} for day in DAYS if day >= "2026-03-07"}
        assert _numbers(counters, source) == {day: len(those) for day, those in clients.items() if those}


@pytest.mark.parametrize("source", [VIEW, PACKED])
def test_a_month_goes_by(source: Event) -> None:
    with _counted(source) as counters:
        for number, client in enumerate(("ann", "bob", "eve")):
            counters.accept(source, _view(number, client, "2026-03-10"))
        counters.retract(source, _view(2, "eve", "2026-03-10"))
        assert _numbers(counters, source) == {"2026-03-10": 2}
        assert len(_members(counters, source)) == 3
        counters.clock.advance(timedelta(days=4))
        # Late: neither counted nor taken back.
        counters.accept(source, _view(9, "joe", "2026-03-10"))
        counters.retract(source, _view(0, "ann", "2026-03-10"))
        assert _numbers(counters, source) == {"2026-03-10": 2}
        counters.clock.advance(timedelta(days=30))
        assert _members(counters, source) == []
        assert _numbers(counters, source) == {"2026-03-10": 2}
