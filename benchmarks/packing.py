"""What accepting packed events costs: by events per chunk, with duplicates, and with events that come late."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final, TypeAlias

from benchmarks import workloads
from benchmarks.databases import Database, EngineDatabase, MemoryDatabase
from benchmarks.designs.base import TABLE
from benchmarks.designs.packed import PACKED_VIEW
from benchmarks.queue_and_stream import chunks
from dynamodb_counters._declarations import Event, Packed
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept_many
from dynamodb_counters.testing._dynamodb.capacity import (
    DOLLARS_PER_MILLION_READS,
    DOLLARS_PER_MILLION_WRITES,
    Usage,
)

READ_PRICE: Final = DOLLARS_PER_MILLION_READS / DOLLARS_PER_MILLION_WRITES
"""Of a read unit, in write units."""

CALL: Final = 64
"""Events per call, where nothing else is said."""

Values: TypeAlias = Mapping[str, Any]

_PER_CHUNK: Final = (1, 4, 16, 64, 256, 1024)
_FEWEST: Final = 1000
"""Calls that are measured, if there are so many."""

_ON_ENGINE: Final = (16, 64, 256)
_FEWEST_SCATTERED: Final = 30
_LARGE: Final = 65_536
"""Bytes of a chunk that holds any of these calls."""

_NEAR: Final = 500
"""A duplicate that comes so many events later at most is close by."""


def units(usage: Mapping[str, float]) -> float:
    """Write units with reads at their price."""
    return usage["write_units"] + READ_PRICE * usage["read_units"]


def per_event(usage: Usage, events: int) -> dict[str, float]:
    """Units per event, and both together at the price of write units."""
    found = {"write_units": usage.writes / events, "read_units": usage.reads / events}
    return {**found, "units": units(found)}


def beside(reported: Usage, ruled: Usage, events: int) -> dict[str, float]:
    """Units per event as an engine has reported them, beside the rule's."""
    of = {"engine": per_event(reported, events), "rule": per_event(ruled, events)}
    return {f"{by}_{kind}": of[by][kind] for kind in ("write_units", "read_units") for by in of}


class Writer:
    """A process that accepts packed events; `units` are write units, with reads at their price."""

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

    @property
    def units(self) -> float:
        return self.database.usage.writes + READ_PRICE * self.database.usage.reads


def of(bucket: timedelta, **packed: Any) -> Event:
    return replace(PACKED_VIEW, packed=Packed("time", bucket=bucket, future_tolerance=None, **packed))


def memory() -> MemoryDatabase:
    database = MemoryDatabase()
    database.create(TABLE, "pk", "sk")
    return database


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
        str(size): _accepting(memory(), events[: size * _FEWEST], size, _LARGE)
        for size in _PER_CHUNK
    }
    found["cut at 4 KB"] = _accepting(memory(), events, max(_PER_CHUNK), 4096)
    return found


def _accepting(database: Database, events: Sequence[Values], size: int, chunk_bytes: int) -> dict[str, float]:
    """Accept events in calls of that size; each call's events lie in one day, so that it is one log."""
    writer = Writer(database, of(timedelta(days=1), chunk_bytes=chunk_bytes))
    for part in _by_day(events, size):
        writer.accept(part)
    return per_event(database.usage, len(events))


def _by_day(events: Iterable[Values], size: int) -> Iterator[Sequence[Values]]:
    for _, of_day in groupby(events, key=lambda event: str(event["time"])[:10]):
        yield from chunks(list(of_day), size)


def on_engine(engine: Any, events: int) -> dict[str, dict[str, float]]:
    """Units per event of a subsample on DynamoDB Local, beside the rule."""
    sample: list[Values] = [view.as_event() for view in workloads.hot(events)]
    if workloads.LOG.exists():
        sample = [*workloads.log_in_full()[:events]]
    found = {}
    for name, scenario in _scenarios(sample).items():
        with EngineDatabase(engine) as database:
            database.create(TABLE, "pk", "sk")
            scenario(database)
            reported = database.usage
        ruled = memory()
        scenario(ruled)
        found[name] = beside(reported, ruled.usage, len(sample))
    return found


def _scenarios(sample: Sequence[Values]) -> dict[str, Callable[[Database], object]]:
    dice = random.Random(1)
    late = [_shifted(one, hours=dice.uniform(1, 24)) if dice.random() < 0.01 else one for one in sample]
    repeated = _repeated(dice, sample, 0.2)

    def at(size: int) -> Callable[[Database], object]:
        return lambda database: _accepting(database, sample, size, _LARGE)

    def repeated_by_a_new_process(database: Database) -> None:
        for _ in range(2):
            Writer(database).accept_all(sample)

    return {
        **{f"{size} per chunk": at(size) for size in _ON_ENGINE},
        "20% duplicates close by": lambda database: Writer(database).accept_all(repeated),
        "1% late": lambda database: Writer(database, of(timedelta(minutes=10))).accept_all(late),
        "all again, by a new process": repeated_by_a_new_process,
    }


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
        found[f"20% at the end, {processes}"] = writer.units / len(events)
    return found


def _units(events: Sequence[Values], distinct: int, event: Event = PACKED_VIEW) -> float:
    writer = Writer(memory(), event)
    writer.accept_all(events)
    return writer.units / distinct


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
    """What one event of a bucket costs a process that does not know the bucket, by the bucket's events."""
    found = {}
    for events in (100, 1_000, 10_000):
        views = [view.as_event() for view in workloads.hot(events + 1)]
        writer = Writer(memory(), of(timedelta(days=1)))
        writer.accept_all(views[:-1], 1024)
        chunks_held = sum("_chunk" in item for item in writer.database.items(TABLE))
        writer.restart()
        usage = writer.database.usage
        writes, reads = usage.writes, usage.reads
        writer.accept(views[-1:])
        writes, reads = usage.writes - writes, usage.reads - reads
        found[str(events)] = {
            "chunks": chunks_held,
            "write_units": writes,
            "read_units": reads,
            "units": writes + READ_PRICE * reads,
        }
    return found
