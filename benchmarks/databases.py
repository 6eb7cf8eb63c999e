"""The two engines the designs run on: DynamoDB in memory, and DynamoDB Local."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Self, TypeAlias

from dynamodb_counters.testing._dynamodb.capacity import Usage
from dynamodb_counters.testing._dynamodb.memory_client import MemoryDynamoDB
from dynamodb_counters.testing._dynamodb.stream_source import Source
from simulation.clock import VirtualClock
from simulation.delivery.stream_api import ApiSource

_METERED: Final = ("PutItem", "UpdateItem", "TransactWriteItems", "Query", "GetItem", "BatchGetItem")


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
        self.client: Any = engine.client
        self.clock = time.time
        self._streams = engine.streams
        self._tables: list[str] = []
        self._metered = True

    def __enter__(self) -> Self:
        self._hook(self.client.meta.events.register)
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._tables:
            self.client.delete_table(TableName=name)
        self._hook(self.client.meta.events.unregister)

    def _hook(self, change: Callable[..., None]) -> None:
        for operation in _METERED:
            change(f"before-parameter-build.dynamodb.{operation}", self._ask, unique_id=f"ask-{operation}")
        change("after-call.dynamodb", self._note, unique_id="note")

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

    def items(self, table: str) -> Iterable[Mapping[str, Any]]:
        """All items, free of charge."""
        self._metered = False
        pages = list(self.client.get_paginator("scan").paginate(TableName=table))
        self._metered = True
        return [item for page in pages for item in page["Items"]]

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


Database: TypeAlias = MemoryDatabase | EngineDatabase
