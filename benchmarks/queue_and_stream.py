"""Delivers a workload to a design: once, at least once as queues and streams do, or while events keep coming."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, Final, TypeAlias, TypeVar

from benchmarks.databases import Database
from benchmarks.designs.base import QUEUE_BATCH, Design
from demo.blog.traffic import View
from simulation.delivery.event_source_mapping import Delivery, EventSourceMapping, Settings
from simulation.faults.actors import Crashed
from simulation.faults.faulty_client import Fault
from simulation.memory.memory_client import Usage
from simulation.memory.memory_stream import Record

_T = TypeVar("_T")
Aggregate: TypeAlias = Callable[[Sequence[Record]], object]

REDELIVERED: Final = 0.1
DYING: Final = 0.5
"""Share of the redelivered batches during which the function dies."""


class Mortality:
    """How many calls a function's process lives for."""

    calls_left = float("inf")

    def decide(self, _operation: str) -> Fault:
        if self.calls_left <= 0:
            return Fault.CRASH_BEFORE
        self.calls_left -= 1
        return Fault.NONE


class Stream:
    def __init__(self, database: Database, table: str, batch: int) -> None:
        self._source = database.stream(table)
        self._batch = batch
        self._delay = database.stream_delay
        # No batch is cut by its size, and no window: designs are compared by full batches.
        settings = Settings(batch_size=batch, max_bytes=None, window_seconds=0, bisect=True)
        self.mapping = EventSourceMapping(self._source, database.clock, settings)

    def deliveries(self) -> Iterator[Delivery]:
        """Poll all shards until nothing is left; each delivery must be settled or failed."""
        time.sleep(self._delay)
        while polled := [delivery for shard in self.mapping.shards() if (delivery := self.mapping.poll(shard))]:
            yield from polled

    def holds_a_batch(self) -> bool:
        """Return whether the only shard has a full batch to deliver."""
        [shard] = self.mapping.shards()
        return len(self._source.read(shard, self.mapping.checkpoint(shard), self._batch).records) == self._batch

    def settle(self, delivery: Delivery, aggregate: Aggregate) -> None:
        aggregate(delivery.records)
        self.mapping.settle(delivery, None)

    def drain(self, aggregate: Aggregate) -> None:
        """Deliver everything once: what is written meanwhile, too."""
        for delivery in self.deliveries():
            self.settle(delivery, aggregate)


def chunks(values: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def deliver(design: Design, database: Database, views: Sequence[View], batch: int) -> Usage:
    """Accept all, then count; return what accepting took."""
    for part in chunks(views, design.events_per_call):
        design.accept(part)
    accepted = copy(database.usage)
    if design.streamed:
        Stream(database, design.streamed, design.records_per_batch or batch).drain(design.aggregate)
    return accepted


def deliver_steadily(
    accept: Callable[[Sequence[_T]], object],
    stream: Stream,
    aggregate: Aggregate,
    events: Sequence[_T],
    per_call: int = QUEUE_BATCH,
) -> None:
    """Accept events whenever the stream has less than a batch: its own changes take room in each."""
    for part in chunks(events, per_call):
        while stream.holds_a_batch():
            stream.settle(next(stream.deliveries()), aggregate)
        accept(part)
    stream.drain(aggregate)


def deliver_at_least_once(
    design: Design, database: Database, mortality: Mortality, views: Sequence[View], batch: int
) -> None:
    """Deliver a tenth of the queue's and of the stream's batches more than once.

    Half of them because the acknowledgement got lost, half because the function died at a random request of its work.
    A batch of the stream comes again whole after the first, bisected after the second.
    """
    dice = random.Random(1)
    for part in chunks(views, design.events_per_call):
        if dice.random() < REDELIVERED:
            if dice.random() < DYING:
                _killed(mortality, dice.randrange(design.requests_per_call), design.accept, part)
                design.restart()
            else:
                design.accept(part)
        design.accept(part)
    if not design.streamed:
        return
    stream = Stream(database, design.streamed, batch)
    for delivery in stream.deliveries():
        before = stream.mapping.checkpoint(delivery.shard)
        if dice.random() >= REDELIVERED:
            stream.settle(delivery, design.aggregate)
        elif dice.random() < DYING:
            _killed(mortality, dice.randrange(60), design.aggregate, delivery.records)
            design.restart()
            stream.mapping.fail(delivery)
        else:
            stream.settle(delivery, design.aggregate)
            stream.mapping.rewind(delivery.shard, before)


def _killed(mortality: Mortality, calls: int, work: Callable[[Any], None], batch: Any) -> None:
    """Run until that many calls are made, or to the end if it needs fewer."""
    mortality.calls_left = calls
    with suppress(Crashed):
        work(batch)
    mortality.calls_left = float("inf")
