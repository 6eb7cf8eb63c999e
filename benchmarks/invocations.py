"""Steady traffic, replayed: the real writer and handler, a batching window, and a table of few partitions."""

from __future__ import annotations

import io
import json
import math
import os
import random
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any, Final
from unittest.mock import patch

from benchmarks.cold_start import lambda_environment
from benchmarks.partitioned_table import PartitionedTable
from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._cost import functions
from simulation.handler_process import LAMBDA_CONTEXT

_VIEW: Final = Event("view", pk="VIEW#{id}", sk="VIEW")
_PAGES: Final = Aggregate("pages", _VIEW, pk="PAGE#{page}", sk="STATISTICS", measures={"views": Count()})


@dataclass
class Used:
    """Consumption of so many events: units, invocations and their seconds, and metrics by the hours they are in."""

    events: int = 0
    writes: float = 0.0
    reads: float = 0.0
    runs: int = 0
    seconds: float = 0.0
    metric_hours: set[tuple[int, str]] = field(default_factory=set)

    @property
    def metrics(self) -> float:
        """Metrics that have a value in an hour, on average over those that have any."""
        return len(self.metric_hours) / len({hour for hour, _ in self.metric_hours})


def replay(rate: float, events: int, pages: int, gather: float = 1.0, partitions: int = 4) -> tuple[Used, Used]:
    """Consumption of the first half of the events, and of the second.

    Events come at random, each of a random page; a batch gathers from its first event on. Changes that the handler
    itself makes join such a batch, or come at once where none gathers.
    """
    with patch.dict(os.environ, lambda_environment((_PAGES,)) | {"POWERTOOLS_LOG_LEVEL": "WARNING"}):
        # It reads its settings when it is imported.
        from dynamodb_counters.handlers import aggregator  # noqa: PLC0415

        replayed = _Replay(rate, pages, gather, partitions, aggregator)
        return replayed.take(events // 2), replayed.take(events - events // 2)


class _Replay:
    def __init__(self, rate: float, pages: int, gather: float, partitions: int, aggregator: Any) -> None:
        self._table = PartitionedTable(partitions, declared=(_PAGES,))
        self._dice = random.Random(1)
        self._rate, self._pages, self._gather, self._aggregator = rate, pages, gather, aggregator
        self._arrival = self._table.clock()
        self._gathering: dict[int, float] = {}
        self._used = Used()

    def take(self, events: int) -> Used:
        table, usage = self._table, self._table.memory.usage
        self._used = used = Used(events)
        writes, reads = usage.writes, usage.reads
        while events:
            due = min(self._arrival, table.stream.next_window_end(), *self._gathering.values())
            table.clock.now = due
            if due == self._arrival:
                self._accept()
                events -= 1
            else:
                self._deliver(due)
        used.writes, used.reads = usage.writes - writes, usage.reads - reads
        return used

    def _accept(self) -> None:
        before = self._table.stream.unread()
        # Sequential ids would come to the partitions in turn.
        values = {"id": f"{self._dice.getrandbits(64):016x}", "page": self._dice.randrange(self._pages)}
        self._table.accept(_VIEW, values)
        now = self._table.clock()
        for partition in self._table.stream.unread() - before:
            self._gathering[partition] = now + self._gather
        self._arrival = now + self._dice.expovariate(self._rate)

    def _deliver(self, now: float) -> None:
        stream = self._table.stream
        due = {partition for partition, end in self._gathering.items() if end <= now}
        self._gathering = {partition: end for partition, end in self._gathering.items() if end > now}
        stream.deliver(self._invoke, due)
        while echoes := stream.unread() - self._gathering.keys():
            stream.deliver(self._invoke, echoes)

    def _invoke(self, partition: int, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run the handler, and note how long that would take."""
        table, used, said = self._table, self._used, io.StringIO()
        calls, updates = table.memory.usage.calls, table.meter.touched
        with patch.object(self._aggregator, "aggregator", lambda: table.process(partition)), redirect_stdout(said):
            answer: Mapping[str, Any] = self._aggregator.handler(event, LAMBDA_CONTEXT)
        updates = table.meter.touched - updates
        calls = table.memory.usage.calls - calls
        rounds = math.ceil(updates / functions.PARALLEL_REQUESTS) + calls - updates
        cpu = len(event["Records"]) * functions.CPU_PER_RECORD + updates * functions.CPU_PER_UPDATE
        used.runs += 1
        used.seconds += functions.Function(1, cpu, rounds).seconds
        hour = int(table.clock() // 3600)
        used.metric_hours.add((hour, "InvokedEventCount"))
        for line in said.getvalue().splitlines():
            for metrics in json.loads(line).get("_aws", {}).get("CloudWatchMetrics", ()):
                used.metric_hours |= {(hour, metric["Name"]) for metric in metrics["Metrics"]}
        return answer["state"]  # type: ignore[no-any-return]
