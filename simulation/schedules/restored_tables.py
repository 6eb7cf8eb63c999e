"""Restored tables for tests: copies of a table, how their streams are read, and a client that dies."""

from __future__ import annotations

import base64
import copy
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._quarantine.waiting import PREFIX
from dynamodb_counters._recovery.given_up import GivenUp
from dynamodb_counters._streams import Shard
from dynamodb_counters.testing._dynamodb.memory_stream import Record
from simulation.clock import VirtualClock
from simulation.delivery.stream_api import ApiSource
from simulation.delivery.stream_source import Source
from simulation.metered_table import MeteredTable
from simulation.schedules.backend import Backend, LocalBackend


@dataclass
class Copy:
    """The restored table."""

    name: str
    client: Any
    clock: VirtualClock
    stream: Source
    items: Callable[[], Iterable[Mapping[str, Any]]]


def copied(backend: Backend | MeteredTable, seed: int = 0, name: str = "restored") -> Copy:
    """A table with the backend's items, whose stream is enabled once it has them."""
    items = copy.deepcopy(list(backend.items()))
    if isinstance(backend, MeteredTable):
        clock: Any = backend._clock
        table = MeteredTable(clock, seed=seed + 10**6, shards=2, name=name)
        for item in items:
            table.tables[table.name].partitions.setdefault(item["pk"]["S"], {})[item["sk"]["S"]] = dict(item)
        return Copy(table.name, table, clock, table.stream, table.items)
    assert isinstance(backend, LocalBackend)
    client, name = backend.client, f"restored-{uuid.uuid4().hex[:12]}"
    arn = copied_on_engine(client, name, items)

    def scanned() -> Iterator[Mapping[str, Any]]:
        for page in client.get_paginator("scan").paginate(TableName=name, ConsistentRead=True):
            yield from page["Items"]

    assert backend._engine.streams is not None
    return Copy(name, client, backend.clock, ApiSource(backend._engine.streams, arn, backend._amend), scanned)


def copied_on_engine(client: Any, name: str, items: Iterable[Mapping[str, Any]]) -> str:
    client.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("pk", "sk")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for item in items:
        client.put_item(TableName=name, Item=dict(item))
    specification = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    client.update_table(TableName=name, StreamSpecification=specification)
    put_first_record(client, name)
    arn: str = client.describe_table(TableName=name)["Table"]["LatestStreamArn"]
    return arn


def put_first_record(client: Any, name: str) -> None:
    """DynamoDB Local loses its place in a shard that one has begun to read while the shard was empty."""
    client.put_item(TableName=name, Item={"pk": {"S": "FIRST"}, "sk": {"S": uuid.uuid4().hex}})


class Reader:
    """`StreamReader` over any engine's stream, with the dates and expiries of virtual time."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def shards(self) -> list[Shard]:
        return [Shard(shard.id, "", is_open=True) for shard in self._source.shards()]

    def records(self, shard: str) -> Iterator[Record]:
        return (with_bytes(record) for record in all_records(self._source, shard))


def all_records(source: Source, shard: str) -> list[Record]:
    return source.read(shard, None, 1_000_000).records


def count_own_stream(aggregator: Aggregator, stream: Source) -> None:
    """Let the aggregator deployed over the restored table count, until nothing changes any more."""
    before = -1
    while True:
        records = {shard.id: all_records(stream, shard.id) for shard in stream.shards()}
        if (found := sum(map(len, records.values()))) == before:
            return
        before = found
        for shard, batch in records.items():
            if batch:
                aggregator.handle({"shardId": shard, "Records": batch})


def with_bytes(value: Any) -> Any:
    """Undo base64, which Lambda's form of a record has and the API's has not."""
    if isinstance(value, dict):
        if isinstance(value.get("B"), str) and len(value) == 1:
            return {"B": base64.b64decode(value["B"])}
        return {name: with_bytes(part) for name, part in value.items()}
    return [with_bytes(part) for part in value] if isinstance(value, list) else value


class Objects:
    """An on-failure bucket in memory, with what `OnFailureBucket` does."""

    def __init__(self) -> None:
        self._held: dict[str, GivenUp] = {}
        self._put = 0

    def put(self, batch: GivenUp) -> str:
        self._put += 1
        key = f"{PREFIX}7a2b/{batch.shard}/{self._put}"
        self._held[key] = batch
        return key

    def list_keys(self) -> Iterator[str]:
        return iter(list(self._held))

    def read(self, key: str) -> GivenUp:
        return self._held[key]

    def delete(self, key: str) -> None:
        del self._held[key]
