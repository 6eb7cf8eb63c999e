"""Throttles admit what AWS says a partition, an item and an index take, and no more."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from simulation.clock import VirtualClock
from simulation.queue.throttled_table import ThrottledTable
from simulation.queue.throttles import Limits, Throttles
from simulation.queue.virtual_threads import VirtualThreads

_RATE = 100.0
_SECONDS = 30


def _admitted(limits: Limits, sort_key: Callable[[int], str], offered: int) -> float:
    """Units per second that are admitted in the last half of a while, of writes to one partition key."""
    clock = VirtualClock()
    throttles, found = Throttles(limits, clock), 0
    for number in range(_SECONDS * offered):
        clock.advance(1 / offered)
        taken = throttles.take([("key", sort_key(number), 1.0)])
        found += taken and number >= _SECONDS * offered / 2
    return found / _SECONDS * 2


def test_a_partition_key_takes_its_units_per_second() -> None:
    assert _admitted(Limits(writes=_RATE), str, 300) == pytest.approx(_RATE, rel=0.05)
    assert _admitted(Limits(writes=_RATE), str, 90) == 90


def test_a_split_for_heat_helps_where_sort_keys_are_spread_alone() -> None:
    dice = random.Random(1)
    limits = Limits(writes=_RATE, splits_after=2.0)
    assert _admitted(limits, lambda _: f"{dice.random():.6f}", 150) == pytest.approx(150, rel=0.02)
    assert _admitted(limits, lambda number: f"{number:09}", 150) == pytest.approx(_RATE, rel=0.05)
    assert _admitted(limits, lambda _: "item", 150) == pytest.approx(_RATE, rel=0.05)


def test_an_item_takes_no_more_than_a_partition() -> None:
    """A request with several of its items takes all units or none."""
    throttles = Throttles(Limits(writes=2.0), VirtualClock())
    assert throttles.take([("a", "1", 1.0), ("b", "1", 1.0)])
    assert not throttles.take([("a", "2", 1.0), ("b", "1", 2.0)])
    assert throttles.take([("a", "2", 1.0)])


def test_reads_of_a_partition_key_are_limited_apart_from_writes() -> None:
    throttles = Throttles(Limits(writes=1.0, reads=2.0), VirtualClock())
    assert throttles.take([("a", "1", 1.0)])
    assert [throttles.take_reads("a", 1.0) for _ in range(3)] == [True, True, False]


def test_a_throttled_index_throttles_the_writes_of_its_table() -> None:
    table = ThrottledTable(VirtualThreads(VirtualClock()), Limits(index_writes=2.0))

    def put(player: str, score: int) -> None:
        item: dict[str, Any] = {"pk": {"S": player}, "sk": {"S": "-"}, "_board": {"S": "all"}}
        table.put_item(TableName="counters", Item={**item, "_score": {"N": str(score)}})

    put("a", 1)
    before = table.usage.writes
    with pytest.raises(ClientError, match="ProvisionedThroughputExceeded"):
        # Its entry is deleted, and put again.
        put("a", 2)
    assert table.usage.writes == before
    assert table.throttled == 1
    put("b", 1)
