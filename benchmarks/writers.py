"""Several processes that write the same logs: what the puts cost that others forestall.

Every request takes a round trip of virtual time; one process runs at a time, the one whose answer comes first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from heapq import heapify, heappop, heapreplace
from typing import Any, Final, TypeVar

from benchmarks import workloads
from benchmarks.databases import Database, EngineDatabase
from benchmarks.designs.base import TABLE
from benchmarks.packing import CALL, Values, beside, memory, of, per_event
from benchmarks.queue_and_stream import chunks
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.event_identity import EventIdentity
from dynamodb_counters._layouts import Layouts
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept_many
from dynamodb_counters._writes.event_items import typed_item
from dynamodb_counters.testing._dynamodb.memory_client import Paginator
from simulation.faults.actors import Actor

_ROUND_TRIP: Final = 0.005
_PAUSE: Final = 100.0
"""Round trips between the calls of a process that is not saturated, on average."""

_NUMBERS: Final = (1, 2, 8, 32)
_T = TypeVar("_T")
_R = TypeVar("_R")


class _SerialTable(Table):
    """Does one thing after the other, in the thread that asks for it."""

    def side_by_side(self, work: Callable[[_T], _R], items: Sequence[_T]) -> list[tuple[_T, _R | Exception]]:
        return [(item, work(item)) for item in items]


class _Process:
    """A process with a client and a memory of its own, that takes the next events from its queue."""

    def __init__(
        self, number: int, database: Database, event: Event, queue: Iterator[Sequence[Values]], pause: float
    ) -> None:
        # Not all at the same moment.
        self._dice = random.Random(number)
        self.due = self._dice.random()
        self.failed = 0
        self._database, self._event, self._queue, self._pause = database, event, queue, pause
        self.exceptions = database.client.exceptions
        self.actor = Actor(self._run)

    def put_item(self, **request: Any) -> Any:
        return self._sent(lambda: self._database.client.put_item(**request))

    def query(self, **request: Any) -> Any:
        return self._sent(lambda: self._database.client.query(**request))

    def get_paginator(self, _operation: str) -> Paginator:
        return Paginator(self.query)

    def _sent(self, send: Callable[[], Any]) -> Any:
        # It takes effect half-way.
        self._wait(0.5)
        try:
            return send()
        finally:
            self._wait(0.5)

    def _wait(self, round_trips: float) -> None:
        self.due += round_trips
        self.actor.pause("")

    def _run(self) -> None:
        table = _SerialTable(
            TABLE,
            self,  # type: ignore[arg-type]
            clock=self._database.clock,
            sleep=lambda seconds: self._wait(seconds / _ROUND_TRIP),
            jitter=self._dice.random,
        )
        while True:
            self._wait(self._pause * self._dice.uniform(0.5, 1.5))
            events = next(self._queue, None)
            if events is None:
                return
            while events:
                outcomes = accept_many(table, self._event, events)
                assert {outcome.status for outcome in outcomes} <= {"accepted", "failed"}, outcomes
                # As a queue does.
                events = [one for one, outcome in zip(events, outcomes, strict=True) if outcome.status == "failed"]
                self.failed += bool(events)


def measure(events: int) -> dict[str, Any]:
    """Units per event of one process, and of several: saturated, with pauses, and saturated with a part each."""
    views = [view.as_event() for view in workloads.hot(events)]
    shared = of(timedelta(days=1))
    return {
        str(number): {
            "saturated": _units(views, number, shared, 0.0),
            "with pauses": _units(views, number, shared, _PAUSE),
            "a part each": _units(views, number, of(timedelta(days=1), parts=number), 0.0, own_parts=True),
        }
        for number in _NUMBERS
    }


def on_engine(engine: Any, events: int) -> dict[str, dict[str, float]]:
    """Units per event of a subsample on DynamoDB Local, which bills no refused put, beside the rule."""
    views = [view.as_event() for view in workloads.hot(events)]
    found = {}
    for case, event, pause in (
        ("8 processes with pauses", of(timedelta(days=1)), _PAUSE),
        ("8 processes, a part each", of(timedelta(days=1), parts=8), 0.0),
    ):
        with EngineDatabase(engine) as database:
            database.create(TABLE, "pk", "sk")
            _units(views, 8, event, pause, own_parts=not pause, database=database)
            reported = database.usage
        _units(views, 8, event, pause, own_parts=not pause, database=(ruled := memory()))
        found[case] = beside(reported, ruled.usage, len(views))
    return found


def _units(
    events: Sequence[Values],
    number: int,
    event: Event,
    pause: float,
    *,
    own_parts: bool = False,
    database: Database | None = None,
) -> dict[str, float]:
    database = memory() if database is None else database
    queues: list[Iterator[Sequence[Values]]]
    if own_parts:
        queues = [chunks(part, CALL) for part in _parts(events, event)]
    else:
        queues = [iter(chunks(events, CALL))] * number
    processes = [_Process(index, database, event, queue, pause) for index, queue in enumerate(queues)]
    last = run(processes)
    return {
        **per_event(database.usage, len(events)),
        "round_trips": last,
        "failed_calls": sum(process.failed for process in processes),
    }


def run(processes: Sequence[_Process]) -> float:
    """Run them all to their end; return when the last one ended, in round trips."""
    waiting = [(process.due, number) for number, process in enumerate(processes)]
    heapify(waiting)
    last = 0.0
    while waiting:
        last, number = waiting[0]
        process = processes[number]
        process.actor.step()
        if not process.actor.done:
            heapreplace(waiting, (process.due, number))
            continue
        heappop(waiting)
        if process.actor.error is not None:
            raise process.actor.error
    return last


def _parts(events: Sequence[Values], event: Event) -> list[list[Values]]:
    layout = Layouts.of_table(Table(TABLE, memory().client)).of(event).layouts[0]
    identity = EventIdentity(event)
    found: list[list[Values]] = [[] for _ in range(layout.parts)]
    for values in events:
        typed = typed_item(event, values)
        found[int(layout.part(identity.digest(typed), typed))].append(values)
    return found
