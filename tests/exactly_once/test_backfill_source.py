"""Backfill and verification of a source table, which only its own code writes to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Distinct, Items, Sum, TableKeys
from dynamodb_counters._backfill.backfill import Backfill
from dynamodb_counters._backfill.feeds import Feeds, SourceTable, StreamReader
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations import Declaration, flatten
from dynamodb_counters._table import Table
from simulation.clock import VirtualClock
from simulation.metered_table import Metered
from simulation.recorded_stream import RecordedStream

ORDER = Items("order", pk="CUSTOMER#{customer}", sk="ORDER#{order}", keys=TableKeys("PK", "SK", ttl="goneAt"))
SPENT = Aggregate(
    "spent", ORDER, pk="CUSTOMER#{customer}", sk="SPENT", measures={"orders": Count(), "cents": Sum("cents")}
)
BUYERS = Distinct("buyers", ORDER, pk="SHOP", sk="BUYERS", member="customer")
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/orders"


class Shop:
    """A table of orders with a past, the table of counts, and the function that both streams invoke."""

    def __init__(self, declarations: tuple[Declaration, ...]) -> None:
        self.clock = VirtualClock()
        self.client = Metered(self.clock)
        self.orders = self.client.create(ARN, "PK", "SK", seed=1, shards=2)
        assert isinstance(self.orders.stream, RecordedStream)
        self.stream = self.orders.stream
        self.stream.arn = f"{ARN}/stream/2026-11-20T00:00:00.000"
        self.counts = self.client.create("counters", "pk", "sk", seed=2, shards=2)
        for number in range(20):
            self.put(number, number)
        self.clock.advance(2 * 86_400)
        # The stream has forgotten them.
        self.stream.trim(self.clock.now - 86_400)
        client: Any = self.client
        client.describe_table = self._describe
        self.table = Table("counters", client, clock=self.clock, sleep=self.sleep)
        self._aggregator = Aggregator(
            Table("counters", client, clock=self.clock, sleep=self.clock.advance),
            declarations,
            quarantine_retention_seconds=86_400,
            source_table=ARN,
        )
        self._aggregator.handle({})
        self._delivered: dict[str, int] = {}
        self.is_asleep = False

    def _describe(self, **request: Any) -> Any:
        answer = Metered.describe_table(self.client, **request)
        if request["TableName"] == ARN:
            created = datetime.fromtimestamp(self.clock.now - 3 * 86_400, UTC)
            answer["Table"] |= {"CreationDateTime": created, "LatestStreamLabel": created.strftime("%Y-%m-%dT%H:%M:%S")}
        return answer

    def put(self, number: int, cents: int, customer: str = "ann") -> None:
        key = {"PK": {"S": f"CUSTOMER#{customer}"}, "SK": {"S": f"ORDER#{number}"}}
        self.client.put_item(TableName=ARN, Item={**key, "cents": {"N": str(cents)}})

    def delete(self, number: int) -> None:
        self.client.delete_item(TableName=ARN, Key={"PK": {"S": "CUSTOMER#ann"}, "SK": {"S": f"ORDER#{number}"}})

    def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for stream in (self.counts.stream, *([] if self.is_asleep else [self.orders.stream])):
            for shard in stream.shards():
                records = stream.read(shard.id, None, 100_000).records
                fresh = records[self._delivered.get(shard.id, 0) :]
                self._delivered[shard.id] = len(records)
                for start in range(0, len(fresh), 10):
                    self._aggregator.handle({"shardId": shard.id, "Records": fresh[start : start + 10]})

    def runner(self) -> dict[str, Any]:
        client: Any = self.client
        self.stream.page_records = 3
        streams: Any = self.stream
        counts: Any = self.counts.stream
        reader = StreamReader(streams, self.orders.stream.arn, sleep=lambda _: None)
        source = SourceTable(table=Table(ARN, client), key_names=("PK", "SK"), stream=reader)
        own = StreamReader(counts, counts.arn, sleep=lambda _: None)
        return {"table": self.table, "feeds": Feeds(own, source), "now": self.clock}

    def read(self) -> tuple[Any, Any, bool]:
        client: Any = self.client
        counters = Counters("counters", client=client, clock=self.clock)
        group = counters.get(SPENT, {"customer": "ann"}, consistent=True)
        return dict(group.measures), counters.get(BUYERS, {}, consistent=True)["distinct"], group.complete


@pytest.fixture
def shop() -> Shop:
    """A shop whose orders are counted from now on."""
    return Shop(flatten([SPENT, BUYERS]))


def test_items_of_a_source_table_are_counted_while_they_change(shop: Shop) -> None:
    for number in range(5):
        shop.delete(number)
    shop.sleep(1)
    assert shop.read() == ({"orders": 0, "cents": 0}, 0, False)
    for progress in Backfill(**shop.runner(), page_items=4).steps():
        if progress.phase == "scanning":
            shop.delete(5 + progress.done % 5)
            shop.put(100 + progress.done, 7, "bob")
    shop.sleep(61)
    left = [item for item in shop.orders.items() if item["PK"]["S"] == "CUSTOMER#ann"]
    cents = sum(int(item["cents"]["N"]) for item in left)
    assert shop.read() == ({"orders": len(left), "cents": cents}, 2, True)
    verifying = Verification(**shop.runner())
    for _ in verifying.steps():
        shop.put(200, 3, "eve")
    assert (verifying.differences, verifying.compared >= 3) == ([], True)


def test_a_run_waits_for_what_the_source_table_has_that_is_not_logged_yet(shop: Shop) -> None:
    waited = 0
    for progress in Backfill(**shop.runner()).steps():
        if progress.phase == "scanning" and not shop.is_asleep:
            shop.is_asleep = True
            shop.delete(3)
        waited += progress.phase == "draining"
        if waited == 60:
            shop.is_asleep = False
    shop.sleep(61)
    assert waited >= 60
    assert shop.read() == ({"orders": 19, "cents": sum(range(20)) - 3}, 1, True)
