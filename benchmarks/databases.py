"""The two engines the designs run on: tables in memory, and DynamoDB Local."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from benchmarks.memory import MemoryClient
from benchmarks.usage import Usage

_METERED: Final = ("PutItem", "UpdateItem", "TransactWriteItems", "Query", "GetItem", "BatchGetItem")


class MemoryDatabase:
    """Tables in memory."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.client: Any = MemoryClient(self.usage)

    def create(self, name: str, *keys: str) -> None:
        """Create a table."""
        self.client.create(name, *keys)

    def items(self, table: str) -> Iterable[Mapping[str, Any]]:
        """Give all items of a table."""
        return self.client.items(table)  # type: ignore[no-any-return]

    def records(self) -> list[dict[str, Any]]:
        """Give the stream records so far."""
        return self.client.stream  # type: ignore[no-any-return]


class EngineDatabase:
    """Tables of a running DynamoDB Local, with names that no other run uses.

    Parameters
    ----------
    engine : Engine
        Where.
    """

    def __init__(self, engine: Any) -> None:
        self.usage = Usage()
        self.client: Any = engine.client
        self._streams = engine.streams
        self._tables: list[str] = []
        self._metered = True
        events = self.client.meta.events
        for operation in _METERED:
            events.register(f"before-parameter-build.dynamodb.{operation}", self._ask, unique_id=f"ask-{operation}")
        events.register("after-call.dynamodb", self._note, unique_id="note")

    def create(self, name: str, *keys: str) -> None:
        """Create a table, streamed."""
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
        """Give all items of a table, unmetered."""
        self._metered = False
        try:
            return [
                item for page in self.client.get_paginator("scan").paginate(TableName=table) for item in page["Items"]
            ]
        finally:
            self._metered = True

    def records(self) -> list[dict[str, Any]]:
        """Give the stream records so far, those of one table after those of another."""
        found: list[dict[str, Any]] = []
        # A record shows up some milliseconds after its write.
        time.sleep(0.2)
        for table in self._tables:
            stream = self.client.describe_table(TableName=table)["Table"]["LatestStreamArn"]
            for shard in self._streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"]:
                place = self._streams.get_shard_iterator(
                    StreamArn=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
                )["ShardIterator"]
                while place:
                    page = self._streams.get_records(ShardIterator=place)
                    if not page["Records"]:
                        break
                    found += [self._plain(record, table) for record in page["Records"]]
                    place = page.get("NextShardIterator")
        return found

    @staticmethod
    def _plain(record: dict[str, Any], table: str) -> dict[str, Any]:
        change = record["dynamodb"]
        # The client reads the time as a datetime, Lambda hands it over as a number.
        created = change["ApproximateCreationDateTime"].timestamp()
        return {**record, "dynamodb": {**change, "ApproximateCreationDateTime": created}, "table": table}

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
