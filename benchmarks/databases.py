"""The two engines the designs run on: DynamoDB in memory, and DynamoDB Local."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from simulation.clock import VirtualClock
from simulation.delivery.stream_api import ApiSource
from simulation.dynamodb.capacity import Usage
from simulation.dynamodb.client import MemoryDynamoDB
from simulation.dynamodb.stream_source import Source

_METERED: Final = ("PutItem", "UpdateItem", "TransactWriteItems", "Query", "GetItem", "BatchGetItem")


class Database(Protocol):
    """Tables of an engine, and what their use has cost.

    A record is in the stream `stream_delay` seconds after its write; `clock` dates it.
    """

    client: Any
    usage: Usage
    stream_delay: float

    @property
    def clock(self) -> Callable[[], float]: ...

    def create(self, name: str, *keys: str) -> None:
        """Create a streamed table with the given key attributes."""

    def items(self, table: str) -> Iterable[Mapping[str, Any]]:
        """All items of a table, free of charge."""

    def stream(self, table: str) -> Source: ...


class MemoryDatabase:
    stream_delay = 0.0

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self._memory = MemoryDynamoDB(self.clock)
        self.client: Any = self._memory
        self.usage = self._memory.usage

    def create(self, name: str, *keys: str) -> None:
        self._memory.create(name, *keys)

    def items(self, table: str) -> Iterable[Mapping[str, Any]]:
        return self._memory.tables[table].items()

    def stream(self, table: str) -> Source:
        return self._memory.tables[table].stream


class EngineDatabase:
    """Tables of a running DynamoDB Local, with names that no other run uses."""

    stream_delay = 0.2

    def __init__(self, engine: Any) -> None:
        self.usage = Usage()
        self.client: Any = engine.client
        self.clock = time.time
        self._streams = engine.streams
        self._tables: list[str] = []
        self._metered = True
        events = self.client.meta.events
        for operation in _METERED:
            events.register(f"before-parameter-build.dynamodb.{operation}", self._ask, unique_id=f"ask-{operation}")
        events.register("after-call.dynamodb", self._note, unique_id="note")

    def create(self, name: str, *keys: str) -> None:
        self.client.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
            KeySchema=[
                {"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
            ],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
        self._tables.append(name)

    def drop(self) -> None:
        """Delete the tables and stop measuring."""
        for name in self._tables:
            self.client.delete_table(TableName=name)
        for operation in _METERED:
            self.client.meta.events.unregister(
                f"before-parameter-build.dynamodb.{operation}", self._ask, unique_id=f"ask-{operation}"
            )
        self.client.meta.events.unregister("after-call.dynamodb", self._note, unique_id="note")

    def items(self, table: str) -> Iterable[Mapping[str, Any]]:
        self._metered = False
        try:
            return [
                item for page in self.client.get_paginator("scan").paginate(TableName=table) for item in page["Items"]
            ]
        finally:
            self._metered = True

    def stream(self, table: str) -> Source:
        return ApiSource(self._streams, self.client.describe_table(TableName=table)["Table"]["LatestStreamArn"])

    def _ask(self, params: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def _note(self, parsed: Mapping[str, Any], model: Any, **_: Any) -> None:
        if not self._metered or model.name not in (*_METERED, "BatchExecuteStatement"):
            return
        self.usage.call()
        consumed = parsed.get("ConsumedCapacity", [])
        units = sum(part["CapacityUnits"] for part in (consumed if isinstance(consumed, list) else [consumed]))
        if model.name in ("PutItem", "UpdateItem", "TransactWriteItems"):
            self.usage.write(("",), units)
        else:
            self.usage.read(units)
