"""Events larger than a chunk, and such as no chunk takes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dynamodb_counters import Counters, Event, Packed
from dynamodb_counters._items.chunks import decode_chunk
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable

_SALE = Event("sale", pk="SALE#{id}", sk="T#{at}", packed=Packed("at"))
_NOISE = random.Random(1).randbytes(250_000).hex()
"""Hexadecimal digits: 1,800 take a kilobyte, compressed."""


@pytest.fixture
def table() -> MemoryTable:
    return MemoryTable(VirtualClock(), 1, 1)


@pytest.fixture
def counters(table: Any) -> Counters:
    return Counters(table.name, client=table, clock=VirtualClock())


def _sale(counters: Counters, kilobytes: int, number: str = "1") -> dict[str, Any]:
    return {"id": number, "at": int(counters._table.clock()), "noise": _NOISE[: 1800 * kilobytes]}


def _signs(table: MemoryTable) -> list[str]:
    return [decode_chunk(item["_chunk"]).signs for item in table.items() if "_chunk" in item]


def test_an_event_larger_than_a_chunk_has_one_of_its_own(table: MemoryTable, counters: Counters) -> None:
    sales = [_sale(counters, size, str(size)) for size in (1, 1, 50, 1, 2)]

    outcomes = [outcome.status for outcome in counters.accept_many(_SALE, [*sales[:1], *sales[2:]])]

    assert outcomes == ["accepted", "accepted", "duplicate", "accepted"]
    assert [decode_chunk(item["_chunk"]).rows for item in table.items() if "_chunk" in item] == [1, 1, 1]


def test_the_largest_event_can_be_retracted(table: MemoryTable, counters: Counters) -> None:
    assert counters.accept(_SALE, _sale(counters, 185)).status == "accepted"
    assert counters.retract(_SALE, _sale(counters, 0))
    assert _signs(table) == ["", "-"]


def test_one_that_is_too_large_is_rejected_and_no_other(table: MemoryTable, counters: Counters) -> None:
    first, other = counters.accept_many(_SALE, [_sale(counters, 195), _sale(counters, 1, "2")])

    assert first.status == "rejected"
    assert "at most 190 KB" in str(first.reason)
    assert other.status == "accepted"
    assert _signs(table) == [""]
