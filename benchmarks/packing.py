"""Cost of accepting packed events: by events per chunk, with duplicates, late events, and several processes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any, Final, TypeAlias

from benchmarks import workloads
from benchmarks.databases import TABLE, Database, MeteredClient, memory, per_event, since, units
from benchmarks.designs.ours import PACKED_VIEW
from benchmarks.queue_and_stream import chunks
from dynamodb_counters._cost.chunk_sizes import ChunkSizes
from dynamodb_counters._declarations import Event, Packed
from dynamodb_counters._declarations.event_identity import EventIdentity
from dynamodb_counters._items.chunks import Row
from dynamodb_counters._layouts import Layouts
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept_many
from dynamodb_counters._writes.event_items import typed_item
from dynamodb_counters.testing._counting import OneByOne
from simulation.clock import VirtualClock
from simulation.queue.virtual_threads import VirtualThreads

CALL: Final = 64
"""Events per call, where nothing else is said."""

Values: TypeAlias = Mapping[str, Any]

_PER_CHUNK: Final = (1, 4, 16, 64, 256, 1024)
_FEWEST: Final = 1000
"""Calls that are measured, if there are so many."""

_FEWEST_SCATTERED: Final = 30
_LARGE: Final = 65_536
"""Bytes of a chunk that holds any of these calls."""

_NEAR: Final = 500
"""A duplicate that comes so many events later at most is close by."""


class Writer:
    """A process that accepts packed events."""

    def __init__(self, database: Database, event: Event = PACKED_VIEW) -> None:
        self.database, self.event = database, event
        self.restart()

    def restart(self) -> None:
        self._table = Table(TABLE, self.database.client, clock=self.database.clock)

    def accept(self, events: Sequence[Values], status: str | None = "accepted") -> None:
        """Accept events in one call; each must come to that status, if one is given."""
        outcomes = accept_many(self._table, self.event, events)
        assert status is None or {outcome.status for outcome in outcomes} == {status}, outcomes

    def accept_all(self, events: Sequence[Values], per_call: int = CALL) -> None:
        for part in chunks(events, per_call):
            self.accept(part, None)


def of(bucket: timedelta, **packed: Any) -> Event:
    return replace(PACKED_VIEW, packed=Packed("time", bucket=bucket, future_tolerance=None, **packed))


def chunk_sizes(events: Sequence[Values]) -> ChunkSizes:
    """How large their chunks are, as `counters cost --sample` finds."""
    return ChunkSizes.measured([Row("+", {name: {"S": str(value)} for name, value in each.items()}) for each in events])


def measure(events: int) -> dict[str, Any]:
    steady = [view.as_event() for view in workloads.hot(events)]
    found = {"chunks": {"hot": _by_chunk(steady)}, "duplicates": {"hot": _duplicates(steady)}}
    if workloads.LOG.exists():
        full = workloads.log_in_full()[: 10 * events]
        keys = [{name: event[name] for name in PACKED_VIEW.fields} for event in full]
        found["chunks"] |= {"log, key attributes": _by_chunk(keys), "log, seven attributes": _by_chunk(full)}
        found["duplicates"]["log"] = _duplicates(keys)
    return {**found, "late": _late(steady), "cold": _cold(), "scattered": _scattered(steady)}


def _by_chunk(events: Sequence[Values]) -> dict[str, Any]:
    found: dict[str, Any] = {
        # Small chunks cost the same however many there are.
        str(size): _accepting(events[: size * _FEWEST], size, _LARGE)
        for size in _PER_CHUNK
    }
    found["cut at 4 KB"] = _accepting(events, max(_PER_CHUNK), 4096)
    return found


def _accepting(events: Sequence[Values], size: int, chunk_bytes: int) -> dict[str, float]:
    """Accept events in calls of that size; each call's events lie in one day, so that it is one log."""
    writer = Writer(memory(), of(timedelta(days=1), chunk_bytes=chunk_bytes))
    for _, of_day in groupby(events, key=lambda event: str(event["time"])[:10]):
        for part in chunks(list(of_day), size):
            writer.accept(part)
    return per_event(writer.database.usage, len(events))


def _duplicates(events: Sequence[Values]) -> dict[str, float]:
    """Units per distinct event, with duplicates that come soon and with some that come at the very end.

    Those at the end are sent by the same process, by a new one, and each call of them by a new one.
    """
    dice = random.Random(1)
    found = {"none": _units(events, len(events))}
    for share in (0.01, 0.2):
        found[f"{share:.0%} close by"] = _units(_repeated(dice, events, share), len(events))
    far = dice.sample(events, len(events) // 5)
    for processes in ("same process", "a new process", "a new process per call"):
        writer = Writer(memory())
        writer.accept_all(events)
        for number, part in enumerate(chunks(far, CALL)):
            if processes != "same process" and (number == 0 or "call" in processes):
                writer.restart()
            writer.accept(part, "duplicate")
        found[f"20% at the end, {processes}"] = units(writer.database.usage) / len(events)
    return found


def _units(events: Sequence[Values], distinct: int, event: Event = PACKED_VIEW) -> float:
    writer = Writer(memory(), event)
    writer.accept_all(events)
    return units(writer.database.usage) / distinct


def _repeated(dice: random.Random, events: Sequence[Values], share: float) -> list[Values]:
    """Insert copies of a share of the events a little later."""
    places = [(number, event) for number, event in enumerate(events)]
    repeated = dice.sample(places, int(share * len(places)))
    copies = [(number + dice.uniform(0.5, _NEAR), event) for number, event in repeated]
    return [event for _, event in sorted([*places, *copies], key=lambda place: place[0])]


def _late(events: Sequence[Values]) -> dict[str, float]:
    """Units per event with one in a hundred late, into buckets the process knows, and what that adds for each."""
    dice, event = random.Random(1), of(timedelta(minutes=10))
    late = [_shifted(one, hours=dice.uniform(1, 24)) if dice.random() < 0.01 else one for one in events]
    number = sum(one is not other for one, other in zip(late, events, strict=True))
    none, some = (_units(each, len(events), event) for each in (events, late))
    return {"none": none, "1% late": some, "per late event": (some - none) * len(events) / max(number, 1)}


def _scattered(events: Sequence[Values]) -> float:
    """Units per event where an event may be of any time of a month, as in an import that is not sorted."""
    dice = random.Random(1)
    sent = [_shifted(event, hours=dice.uniform(0, 30 * 24)) for event in events[: CALL * _FEWEST_SCATTERED]]
    return _units(sent, len(sent), of(timedelta(minutes=10)))


def _shifted(event: Values, hours: float) -> Values:
    earlier = datetime.fromisoformat(event["time"]) - timedelta(hours=hours)
    return {**event, "time": earlier.isoformat(timespec="seconds")}


def _cold() -> dict[str, dict[str, float]]:
    """Cost of one event of a bucket to a process that does not know the bucket, by the bucket's events."""
    found = {}
    for events in (100, 1_000, 10_000):
        views = [view.as_event() for view in workloads.hot(events + 1)]
        writer = Writer(memory(), of(timedelta(days=1)))
        writer.accept_all(views[:-1], 1024)
        chunks_held = sum("_chunk" in item for item in writer.database.items(TABLE))
        writer.restart()
        before = copy(writer.database.usage)
        writer.accept(views[-1:])
        found[str(events)] = {"chunks": chunks_held, **per_event(since(before, writer.database.usage), 1)}
    return found


_ROUND_TRIP: Final = 0.005
"""In seconds; the clock counts round trips."""

_PAUSE: Final = 100.0
"""Round trips between the calls of a process that is not saturated, on average."""

_NUMBERS: Final = (1, 2, 8, 32)


def measure_writers(events: int) -> dict[str, Any]:
    """Units of an event with one process, and with several: saturated, with pauses, and with a part each."""
    views = [view.as_event() for view in workloads.hot(events)]
    shared = of(timedelta(days=1))
    return {
        str(number): {
            "saturated": _accepted(views, number, shared, 0.0),
            "with pauses": _accepted(views, number, shared, _PAUSE),
            "a part each": _accepted(views, number, of(timedelta(days=1), parts=number), 0.0),
        }
        for number in _NUMBERS
    }


def _accepted(events: Sequence[Values], number: int, event: Event, pause: float) -> dict[str, float]:
    """Accept events by so many processes, each those of its part where there are parts."""
    database, threads = memory(), VirtualThreads(VirtualClock(0.0))
    parts = _parts(events, event)
    queues = [chunks(part, CALL) for part in parts] if len(parts) > 1 else [iter(chunks(events, CALL))] * number
    tasks = [
        threads.start(partial(_process, threads, database, event, queue, pause=pause, dice=random.Random(index)))
        for index, queue in enumerate(queues)
    ]
    threads.clock.advance(math.inf)
    return {**per_event(database.usage, len(events)), "failed_calls": sum(task.result() for task in tasks)}


def _process(
    threads: VirtualThreads,
    database: Database,
    event: Event,
    queue: Iterator[Sequence[Values]],
    *,
    pause: float,
    dice: random.Random,
) -> int:
    """Accept the next events of a queue until there are none, with a client and a memory of its own."""

    def hook(_name: str, send: Callable[[], Any], _request: dict[str, Any]) -> Any:
        # A request takes effect half-way.
        threads.sleep(0.5)
        try:
            return send()
        finally:
            threads.sleep(0.5)

    client: Any = MeteredClient(database.client, hook)
    sleep = lambda seconds: threads.sleep(seconds / _ROUND_TRIP)  # noqa: E731
    table = Table(TABLE, client, clock=database.clock, sleep=sleep, jitter=dice.random)
    table.__dict__["pool"] = OneByOne()
    failed = 0
    # Not all begin at the same moment.
    threads.sleep(dice.random())
    while True:
        threads.sleep(pause * dice.uniform(0.5, 1.5))
        events = next(queue, None)
        if events is None:
            return failed
        while events:
            outcomes = accept_many(table, event, events)
            assert {outcome.status for outcome in outcomes} <= {"accepted", "failed"}, outcomes
            # As a queue does.
            events = [one for one, outcome in zip(events, outcomes, strict=True) if outcome.status == "failed"]
            failed += bool(events)


def _parts(events: Sequence[Values], event: Event) -> list[list[Values]]:
    layout = Layouts.of_table(Table(TABLE, memory().client)).of(event).layouts[0]
    identity = EventIdentity(event)
    found: list[list[Values]] = [[] for _ in range(layout.parts)]
    for values in events:
        typed = typed_item(event, values)
        found[int(layout.part(identity.digest(typed), typed))].append(values)
    return found
