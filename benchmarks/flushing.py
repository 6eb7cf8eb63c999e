"""Packed events by rate and flush interval: units per event, dollars per month, and those of careless increments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from benchmarks import bill, workloads
from benchmarks.databases import DOLLARS_PER_MILLION_WRITES, TABLE, memory, units
from benchmarks.designs.ours import SHARD, VIEWS
from benchmarks.packing import Writer, of
from benchmarks.queue_and_stream import Stream, chunks
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._cost.dollars import MONTH
from dynamodb_counters._table import Table

_RATES: Final = (1, 10, 100, 1_000, 10_000)
"""Events per second."""

_INTERVALS: Final = (1, 5, 20, 60)
"""Seconds for which events are gathered in the queue, and chunks in the stream."""

_WAYS: Final = (bill.INCREMENT_BEHIND_API, bill.PLAIN, bill.PACKED, bill.PACKED_SINGLE, bill.PACKED_MANY)

_PROCESSES: Final = 2
"""Processes that take turns: a queue's consumer cannot be limited to fewer."""

_MOST_PER_CALL: Final = 5_000
"""Events: a batch of a queue is 6 MB at most, and 10,000 messages."""

_MOST_FLUSHES_AT_ONCE: Final = 2.5
"""How many times the events to be measured may be flushed at once: more cost no less, and take long to run."""

_EVENTS_PER_BUCKET: Final = 6_000
_RECORDS_PER_BATCH: Final = 100


def measure(events: int) -> dict[str, Any]:
    """For each rate and interval, the units of an event accepted and counted per page, and what a month takes."""
    return {
        str(rate): {
            str(interval): _month(rate, interval, _units(rate, interval, events))
            for interval in _INTERVALS
            if rate * interval <= _MOST_FLUSHES_AT_ONCE * events
        }
        for rate in _RATES
    }


def _units(rate: int, interval: int, events: int) -> dict[str, float]:
    calls = math.ceil(rate * interval / _MOST_PER_CALL)
    per_call = rate * interval // calls
    flushes = max(2, min(200, events // (per_call * calls)))
    event = of(timedelta(seconds=max(1, _EVENTS_PER_BUCKET // rate)))
    database = memory()
    writers = [Writer(database, event) for _ in range(_PROCESSES)]
    table = Table(TABLE, database.client, clock=database.clock)
    aggregator = Aggregator(table, (replace(VIEWS, source=event),), quarantine_retention_seconds=1)
    stream = Stream(database, TABLE, _RECORDS_PER_BATCH)
    usage, accepting = database.usage, 0.0
    sent = [view.as_event() for view in workloads.hot(flushes * calls * per_call, rate=rate)]
    for number, part in enumerate(chunks(sent, per_call)):
        before = units(usage)
        writers[number % _PROCESSES].accept(part)
        accepting += units(usage) - before
        if (number + 1) % calls == 0:
            database.clock.advance(interval)
            stream.drain(lambda records: aggregator.handle({"shardId": SHARD, "Records": records}))
    whole = units(usage)
    found = {"accept": accepting, "aggregate": whole - accepting, "units": whole}
    return {"events_per_call": float(per_call)} | {name: each / len(sent) for name, each in found.items()}


def _month(rate: int, interval: int, took: Mapping[str, float]) -> dict[str, Any]:
    """Dollars of a month: of the units measured, and the whole bill of each way in."""
    millions = rate * MONTH / 1e6
    dynamodb = {"increments": 1.0, "plain": 1 + took["aggregate"], "packed": took["units"]}
    return {
        **took,
        "dynamodb": {name: millions * each * DOLLARS_PER_MILLION_WRITES for name, each in dynamodb.items()},
        "whole": {way.title: bill.bill_of(way, rate, interval, took["events_per_call"])["total"] for way in _WAYS},
    }
