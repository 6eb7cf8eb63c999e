"""Checkpoints only move forward, hold no more than they were given, and come back from their items."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters._commit.checkpoints import Checkpoint, Checkpoints, checkpoint_key
from dynamodb_counters._items.bookkeeping import typed_values
from dynamodb_counters._table import Table
from dynamodb_counters.exactly_once import shard_digest
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable

_SHARD = "shardId-00000000001414576573621-f55eea83"
_sequences = st.integers(1, 9).map("{:040}".format)
_checkpoints = st.builds(Checkpoint, _sequences, st.integers(0, 2_000_000_000).map(float))


@given(_checkpoints)
def test_a_checkpoint_comes_back_from_its_item(checkpoint: Checkpoint) -> None:
    values = {name: getattr(checkpoint, name) for name in Checkpoint.__slots__}
    written = {name: value for name, value in values.items() if value != ""}
    assert Checkpoint.of(typed_values(written)) == checkpoint


def _in_memory() -> tuple[VirtualClock, Any, Table]:
    clock = VirtualClock()
    memory: Any = MemoryTable(clock)
    return clock, memory, Table(memory.name, memory, clock=clock, sleep=lambda _: None)


def test_a_checkpoint_moves_once_in_a_hundred_items() -> None:
    clock, _, table = _in_memory()
    process = Checkpoints(table, table)
    units = [process.committed(_SHARD, f"{number:040}", 40, clock() + 900) for number in range(1, 8)]
    assert units == [0, 0, 1, 0, 0, 1, 0]


@given(st.lists(st.tuples(st.integers(0, 1), _sequences), max_size=12))
def test_a_checkpoint_moves_forward_only(moves: list[tuple[int, str]]) -> None:
    clock, memory, table = _in_memory()
    processes = [Checkpoints(table, table) for _ in range(2)]
    for process in processes:
        process.of(_SHARD, "")
    reached = ""
    for number, sequence in moves:
        processes[number].advance(_SHARD, sequence, clock() + 900)
        item = memory.get_item(TableName=memory.name, Key=checkpoint_key(shard_digest(_SHARD)))["Item"]
        reached = max(reached, sequence)
        assert Checkpoint.of(item).applied_through == reached
        clock.advance(60)
