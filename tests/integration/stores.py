"""A store over any engine, with a clock that only pauses move, and faults on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from counters_lambda.counting.batch import Aggregator, Report
from dynamodb_counters import Aggregate, Counters, Window
from dynamodb_counters._table import Table
from simulation.clock import VirtualClock
from simulation.engines import Engine
from simulation.faults.hooked_client import Hook, HookedClient
from tests.unit.fold.streams import NOW, Record, record

SHARD = "shardId-00000001790000000000-aaaaaaaa"
OTHER_SHARD = "shardId-00000001790000000001-bbbbbbbb"


class Store:
    """One table of an engine, as producers, readers and the stream's consumer see it."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.name = name
        self.hook: Hook = lambda _, send, __: send()
        client: Any = HookedClient(engine.client, self._send)
        self.client = client
        self.clock = VirtualClock(NOW)
        self._is_single = engine.name == "moto"
        self.counters = Counters(name, client=self.client, clock=self.clock)
        self.table = Table(name, self.client, self.clock, sleep=self._pass_time, jitter=lambda: 0.5)

    def aggregator(self, *declarations: Aggregate | Window) -> Aggregator:
        """Build a consumer, as a cold start does."""
        # moto does not parse UPDATEs of PartiQL.
        return Aggregator(self.table, declarations, quarantine_retention_seconds=10**9, single_shard=self._is_single)

    def deliver(self, records: Iterable[Record], *declarations: Aggregate | Window, shard: str = SHARD) -> Report:
        """Deliver a batch to a new consumer."""
        return self.aggregator(*declarations).handle({"Records": list(records), "shardId": shard})

    def deploy(self, *declarations: Aggregate | Window) -> Report:
        """Register the declarations by an invocation."""
        return self.aggregator(*declarations).handle({})

    def items(self) -> list[dict[str, Any]]:
        """All items but checkpoints and the registry."""
        pages = self.client.get_paginator("scan").paginate(TableName=self.name, ConsistentRead=True)
        return [item for page in pages for item in page["Items"] if not item["pk"]["S"].startswith("CHECKPOINT#")]

    def item(self, pk: str, sk: str) -> Mapping[str, Any]:
        """One item; empty if there is none."""
        answer = self.client.get_item(TableName=self.name, Key={"pk": {"S": pk}, "sk": {"S": sk}}, ConsistentRead=True)
        return cast("Mapping[str, Any]", answer.get("Item", {}))

    def _send(self, *request: Any) -> Any:
        return self.hook(*request)

    def _pass_time(self, seconds: float) -> None:
        self.clock.now += seconds

    def inserts(self, first: int = 10**21) -> list[Record]:
        """Return the stream's records of all items, created now."""
        return [record(first + place, item, created=self.clock()) for place, item in enumerate(self.items())]
