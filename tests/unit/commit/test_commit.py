"""Checkpoints move once they are worth a write, and settle once every invocation knows of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dynamodb_counters._assumptions import SETTLED_AFTER
from dynamodb_counters._commit.checkpoints import Checkpoint, Checkpoints
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import MINUTE
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable
from simulation.specification import traces

_SHARD = "shardId-00000000001414576573621-f55eea83"
PAGE = Path(__file__).parents[3] / "docs" / "exactly-once.md"
NEW = f"{8:040}"
STAMP = 1_795_000_000.0
# Limits of Lambda; of a process that relies on what it has read; of clocks that differ, and requests that land late.
INVOCATION, COPY, LATE = 15 * MINUTE, MINUTE, 12 * MINUTE


def test_a_checkpoint_moves_once_in_a_hundred_items() -> None:
    clock = VirtualClock()
    memory: Any = MemoryTable(clock)
    table = Table(memory.name, memory, clock=clock)
    process = Checkpoints(table, table)
    units = [process.committed(_SHARD, f"{number:040}", 40, clock() + 900) for number in range(1, 8)]
    assert units == [0, 0, 1, 0, 0, 1, 0]


@pytest.mark.parametrize("minutes", [1, 11, 16, 26, 28])
def test_a_checkpoint_has_not_settled_while_an_invocation_may_not_know_of_it(minutes: int) -> None:
    assert Checkpoint(applied_through=NEW, at=STAMP).settled_through(STAMP + minutes * MINUTE) == ""


def test_a_checkpoint_has_settled_as_soon_as_every_invocation_knows_of_it() -> None:
    assert Checkpoint(applied_through=NEW, at=STAMP).settled_through(STAMP + INVOCATION + COPY + LATE + 1) == NEW


def test_the_page_and_the_specification_have_the_same_time() -> None:
    assert SETTLED_AFTER == INVOCATION + COPY + LATE == traces.SETTLING
    [minutes] = re.findall(r"\*\*A checkpoint has settled\*\* once it has stood for (\d+) minutes", PAGE.read_text())
    assert int(minutes) * MINUTE == SETTLED_AFTER
