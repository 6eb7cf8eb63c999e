"""Invocations of the real handler per event of a steady rate, with a batching window, on a table of few partitions."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from benchmarks.partitioned_table import PAGES, PartitionedTable


def per_event(rate: float, events: int, pages: int, gather: float = 1.0, partitions: int = 4) -> float:
    """Events come at random, to random partitions, each of a random page; a batch gathers from its first event on.

    Changes that the handler itself makes join such a batch, or come at once where none gathers.
    """
    table, dice, runs = PartitionedTable(partitions, declared=(PAGES,)), random.Random(1), 0

    def invoke(partition: int, event: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal runs
        runs += 1
        return table.invoke(partition, event)

    gathering: dict[int, float] = {}
    arrival, left = table.clock(), events
    while left:
        table.clock.now = now = min(arrival, table.stream.next_window_end(), *gathering.values())
        if now == arrival:
            partition = dice.randrange(partitions)
            table.view(partition, str(dice.randrange(pages)))
            gathering.setdefault(partition, now + gather)
            arrival, left = arrival + dice.expovariate(rate), left - 1
        else:
            due = {partition for partition, end in gathering.items() if end <= now}
            gathering = {partition: end for partition, end in gathering.items() if end > now}
            table.stream.deliver(invoke, due)
            while echoes := table.stream.unread() - gathering.keys():
                table.stream.deliver(invoke, echoes)
    return runs / events
