"""The two engines the designs run on, DynamoDB in memory and DynamoDB Local, and what a run takes on each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any, Final, Self, TypeAlias

from benchmarks.cost_model import PRICES
from simulation.clock import VirtualClock
from simulation.delivery.stream_api import ApiSource, Source
from simulation.engines.tables import create_table
from simulation.faults.hooked_client import PagedClient
from simulation.memory.memory_client import MemoryDynamoDB, Usage

TABLE: Final = "counters"
READ_PRICE: Final = PRICES["dynamodb.read_unit"] / PRICES["dynamodb.write_unit"]
"""Price of a read unit, in write units."""

_WRITES: Final = ("put_item", "update_item", "transact_write_items")
_READS: Final = ("query", "get_item", "batch_get_item")


class MemoryDatabase(MemoryDynamoDB):
    stream_delay = 0.0

    def __init__(self) -> None:
        self.clock = VirtualClock()
        super().__init__(self.clock)
        self.client: Any = self

    def items(self, table: str) -> Iterable[Mapping[str, Any]]:
        return self.tables[table].items()

    def stream(self, table: str) -> Source:
        return self.tables[table].stream


class EngineDatabase:
    """Tables of a running DynamoDB Local, deleted at the end of the context."""

    stream_delay = 0.2
    """Seconds until a write is in the stream."""

    def __init__(self, engine: Any) -> None:
        self.usage = Usage()
        self.client: Any = PagedClient(engine.client, self._meter)
        self.clock = time.time
        self._engine = engine
        self._tables: list[str] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._tables:
            self._engine.client.delete_table(TableName=name)

    def create(self, name: str, *keys: str) -> None:
        create_table(self._engine.client, name, expires=False, keys=keys)
        self._tables.append(name)

    def items(self, table: str) -> Iterable[Mapping[str, Any]]:
        """All items, free of charge."""
        pages = self._engine.client.get_paginator("scan").paginate(TableName=table)
        return [item for page in pages for item in page["Items"]]

    def stream(self, table: str) -> Source:
        described = self._engine.client.describe_table(TableName=table)["Table"]
        return ApiSource(self._engine.streams, described["LatestStreamArn"])

    def _meter(self, name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name not in (*_WRITES, *_READS, "batch_execute_statement"):
            return send()
        with self._lock:
            self.usage.calls += 1
        # DynamoDB Local reports no units for PartiQL, and none for what it refuses.
        if name != "batch_execute_statement":
            request["ReturnConsumedCapacity"] = "TOTAL"
        answer = send()
        consumed = answer.get("ConsumedCapacity", [])
        units = sum(part["CapacityUnits"] for part in (consumed if isinstance(consumed, list) else [consumed]))
        with self._lock:
            if name in _WRITES:
                self.usage.writes += units
            else:
                self.usage.reads += units
        return answer


Database: TypeAlias = MemoryDatabase | EngineDatabase


def memory() -> MemoryDatabase:
    """Return a database with the table."""
    database = MemoryDatabase()
    database.create(TABLE, "pk", "sk")
    return database


def since(before: Usage, usage: Usage) -> Usage:
    """Usage since a copy was made."""
    return Usage(usage.calls - before.calls, usage.writes - before.writes, usage.reads - before.reads)


def read_usage(usage: Usage, read: Callable[[], object]) -> dict[str, float]:
    """Read units and calls of what reads."""
    before = copy(usage)
    read()
    after = since(before, usage)
    return {"units": after.reads, "calls": after.calls}


def dollars_per_million(writes: float, reads: float) -> float:
    """US dollars per million of what takes so many units; storage, Lambda and queues are left out.

    >>> dollars_per_million(4, 0)
    2.5
    """
    return 1e6 * (writes * PRICES["dynamodb.write_unit"] + reads * PRICES["dynamodb.read_unit"])


def per_event(usage: Usage, events: int) -> dict[str, Any]:
    """Usage of an event; its `units` are write units with reads at their price."""
    writes, reads = usage.writes / events, usage.reads / events
    return {
        "write_units": writes,
        "read_units": reads,
        "units": writes + READ_PRICE * reads,
        "calls": usage.calls / events,
        "dollars_per_million": dollars_per_million(writes, reads),
    }
