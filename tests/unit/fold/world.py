"""A table in memory whose own changes come back as stream records, delivered as badly as a test asks for."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from dynamodb_counters import Counters, Event, Items
from dynamodb_counters._commit.checkpoints import Checkpoints
from dynamodb_counters._commit.commit import Committer, Part, Pruner
from dynamodb_counters._declarations import Aggregate, Declarable, flatten
from dynamodb_counters._declarations.groups import values_of
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters._quarantine.quarantine import Quarantine
from dynamodb_counters._table import Table
from dynamodb_counters._writes.event_items import typed_item, with_ttl
from dynamodb_counters.errors import CommitError
from dynamodb_counters.exactly_once import Watermark
from simulation.clock import VirtualClock
from simulation.memory.client_errors import failure
from simulation.memory_table import MemoryTable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

Source = Event | Items


class FaultyTable(MemoryTable):
    """Fails some updates, and loses the acknowledgement of others."""

    faults: random.Random | None = None
    updates = 0

    def update_item(self, **request: Any) -> dict[str, Any]:
        chance = self.faults.random() if self.faults is not None else 1.0
        if chance < 0.1:
            raise failure("UpdateItem", "InternalServerError")
        self.updates += 1
        answer = super().update_item(**request)
        if chance < 0.2:
            raise failure("UpdateItem", "InternalServerError")
        return answer


class World:
    """Declarations, their table and its stream."""

    def __init__(self, declared: Iterable[Declarable], *, seed: int = 0, shards: int = 2) -> None:
        self.declare(declared)
        self.clock = VirtualClock()
        self.client = FaultyTable(self.clock, seed, shards)
        client = cast("DynamoDBClient", self.client)
        self.table = Table("counters", client, clock=self.clock, sleep=lambda _: None, threads=1)
        self.counters = Counters("counters", client=self.table.client)
        self.counters._table = self.table
        self._reached: dict[str, int] = {}

    def declare(self, declared: Iterable[Declarable]) -> None:
        """Deploy declarations; the table keeps what is in it."""
        self.declarations = flatten(declared)
        self.plan = Plan(self.declarations)

    def put(self, source: Source, values: Mapping[str, Any], key: str = "") -> None:
        """Insert or replace an item; one that is no event gets a key of its own."""
        self.client.put_item(TableName="counters", Item=self._item(source, values, key))

    def delete(self, source: Source, values: Mapping[str, Any], key: str = "") -> None:
        item = self._item(source, values, key)
        self.client.delete_item(TableName="counters", Key={"pk": item["pk"], "sk": item["sk"]})

    def expire(self, source: Source, values: Mapping[str, Any], key: str = "") -> None:
        """Let TTL delete an item."""
        due = {"ttl": {"N": str(int(self.clock()))}}
        self.client.put_item(TableName="counters", Item=self._item(source, values, key) | due)
        assert len(self.client.expire()) == 1

    def deliver(self, chance: random.Random, *, faults: bool = False) -> bool:
        """Deliver a batch, perhaps from before what was delivered already; return whether it committed."""
        shard = chance.choice(self.client.stream.shards()).id
        records, reached = self._records(shard), self._reached.get(shard, 0)
        start = chance.randint(0, reached) if chance.random() < 0.3 else reached
        stop = start + chance.choice((1, 2, 5, 100))
        self.client.faults = chance if faults else None
        try:
            self.count(shard, records[start:stop])
        except CommitError:
            return False
        finally:
            self.client.faults = None
        self._reached[shard] = max(reached, min(stop, len(records)))
        return True

    def settle(self, batch: int = 100) -> None:
        """Deliver everything left, and the changes that makes, to the end."""
        busy = True
        while busy:
            busy = False
            for shard in [found.id for found in self.client.stream.shards()]:
                reached, records = self._reached.get(shard, 0), self._records(shard)
                if records[reached:]:
                    busy = True
                    self.count(shard, records[reached : reached + batch])
                    self._reached[shard] = min(reached + batch, len(records))

    def measures(self, aggregate: Aggregate, **values: Any) -> dict[str, Any]:
        return dict(self.counters.get(aggregate, values).measures)

    def groups(self, aggregate: Aggregate) -> set[tuple[str, ...]]:
        """All groups that have an item."""
        items = [item for item in self.client.items() if item.get("_type") == {"S": aggregate.name}]
        found = [values_of(aggregate, item) for item in items]
        return {tuple(values[name] for name in aggregate.fields) for values in found if values is not None}

    def count(self, shard: str, records: list[Any]) -> None:
        folded = fold(self.plan, changes_of(records))
        assert not folded.unfoldable
        checkpoints = Checkpoints(self.table, self.table)
        committer = Committer(self.table, Quarantine(self.table, 1e6), Pruner(self.table, checkpoints))
        watermark = Watermark(shard)
        committer.commit(folded.deltas, Part(self.plan, changes_of(records), watermark))

    def _records(self, shard: str) -> list[Any]:
        return self.client.stream.read(shard, None, 10**9).records

    def _item(self, source: Source, values: Mapping[str, Any], key: str) -> dict[str, Any]:
        return source_item(self.table, source, values, key)


def source_item(table: Table, source: Source, values: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An event, or an item of other code with a key of its own."""
    if isinstance(source, Event):
        return with_ttl(table, source, typed_item(source, values))
    return {**typed_item(None, values), "pk": {"S": f"FOREIGN#{key}"}, "sk": {"S": "ITEM"}}
