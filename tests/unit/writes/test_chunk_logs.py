"""Logs in a process: what it remembers is bounded, what it forgot it reads again, and how it writes them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Counters, Event, Packed
from dynamodb_counters._items.chunks import decode_chunk
from dynamodb_counters._items.table_schema import CHUNK
from dynamodb_counters._writes import chunk_writes
from dynamodb_counters._writes.chunk_writes import _WARY, ChunkLogs
from simulation.clock import VirtualClock
from simulation.metered_table import MeteredTable

_VIEW = Event("view", pk="URL#{url}", sk="T#{at}", packed=Packed("at", bucket=timedelta(minutes=1)))
_HIT = Event("hit", pk="URL#{url}", sk="T#{at}#ID#{id}", packed=Packed("at", bucket=timedelta(minutes=1)))
_MOST = 500


def _views(clock: VirtualClock, minutes: range, each: int = 20) -> list[dict[str, Any]]:
    return [{"url": str(n), "at": int(clock()) // 60 * 60 - 60 * minute} for minute in minutes for n in range(each)]


def test_logs_used_longest_ago_are_forgotten_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_writes, "MOST_EVENTS", _MOST)
    clock = VirtualClock()
    table: Any = MeteredTable(clock, 1, 1)
    counters = Counters(table.name, client=table, clock=clock)
    for minute in range(60):
        counters.accept_many(_VIEW, _views(clock, range(minute, minute + 1)))
        logs = ChunkLogs.of_table(counters._table)
        assert logs._total == sum(len(log.places) + 8 for log in logs._logs.values()) <= _MOST
        assert logs._sizes.keys() == logs._logs.keys()

    outcomes = counters.accept_many(_VIEW, _views(clock, range(60)))

    assert {outcome.status for outcome in outcomes} == {"duplicate"}


def test_a_log_that_is_all_that_is_remembered_is_kept_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_writes, "MOST_EVENTS", _MOST)
    clock = VirtualClock()
    table: Any = MeteredTable(clock, 1, 1)
    counters = Counters(table.name, client=table, clock=clock)
    counters.accept_many(_VIEW, _views(clock, range(3)))
    counters.accept_many(_VIEW, _views(clock, range(1), each=_MOST))

    assert len(ChunkLogs.of_table(counters._table)._logs) == 1
    outcomes = counters.accept_many(_VIEW, _views(clock, range(3), each=_MOST))
    assert sum(outcome.status == "duplicate" for outcome in outcomes) == _MOST + 40


def test_puts_after_the_chunk_of_another_look_first() -> None:
    clock = VirtualClock()
    table: Any = MeteredTable(clock, 1, 1)
    own, other = (Counters(table.name, client=table, clock=clock) for _ in range(2))

    def accept(by: Counters, url: str) -> int:
        """How many requests it takes."""
        before = table.usage.calls
        [outcome] = by.accept_many(_VIEW, [{"url": url, "at": int(clock())}])
        assert outcome.status == "accepted"
        return int(table.usage.calls - before)

    accept(own, "first")
    assert [accept(own, f"alone {n}") for n in range(3)] == [1, 1, 1]
    accept(other, "another")
    accept(own, "refused")
    assert [accept(own, f"after {n}") for n in range(_WARY + 2)] == [2] * _WARY + [1, 1]


def test_events_of_one_partition_key_are_side_by_side_in_a_chunk() -> None:
    clock = VirtualClock()
    table: Any = MeteredTable(clock, 1, 1)
    mixed = [{"url": f"/{n % 7}", "id": n, "at": int(clock())} for n in range(100)]
    Counters(table.name, client=table, clock=clock).accept_many(_HIT, mixed)
    [chunk] = [item[CHUNK] for item in table.items() if CHUNK in item]
    urls = [row.values["url"]["S"] for row in decode_chunk(chunk).all_rows()]
    assert urls == sorted(urls)
    assert len(set(urls)) == 7
