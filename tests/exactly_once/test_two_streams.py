"""An aggregator that two streams feed: the table's own, and that of the source table it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Items, Sum, TableKeys
from dynamodb_counters._commit.batch import Aggregator, Report
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import DAY, HOUR
from dynamodb_counters.errors import MalformedImageError
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable
from tests.exactly_once.test_backfill import mend
from tests.unit.fold.streams import record

ORDER = Items("order", pk="ORDER#{order}", keys=TableKeys("id", ttl="expiresAt"))
ORDERS = Aggregate("orders", ORDER, pk="SHOP#{shop}", sk="ORDERS", measures={"n": Count(), "sum": Sum("cents")})
SHOPS = Aggregate("shops", ORDERS, pk="SHOPS", sk="ALL", measures={"n": Count(), "orders": Sum("n")})
SOURCE = "arn:aws:dynamodb:us-east-1:123456789012:table/shop"
SHARD = "shardId-00000001414576573621-f55eea83"


class Bench:
    """The table of the counts, and an aggregator of both streams."""

    def __init__(self, source_table: str = SOURCE) -> None:
        self.clock = VirtualClock()
        self.table = MemoryTable(self.clock)
        client: Any = self.table
        self.store = Table("counters", client, clock=self.clock, sleep=self.clock.advance)
        self.counters = Counters("counters", client=client, clock=self.clock)
        # Complete, as if they had been backfilled.
        Aggregator(self.store, (ORDERS, SHOPS), quarantine_retention_seconds=90 * DAY).handle({})
        self.deploy((ORDERS, SHOPS), source_table=source_table)

    def deploy(self, declared: tuple[Aggregate, ...], source_table: str = SOURCE) -> None:
        self.aggregator = Aggregator(
            self.store, declared, quarantine_retention_seconds=90 * DAY, source_table=source_table
        )
        self.aggregator.handle({})
        self.clock.advance(HOUR)

    def order(self, sequence: int, cents: Any = 5, **more: Any) -> dict[str, Any]:
        image = {"id": {"S": f"ORDER#{sequence}"}, "shop": {"S": "a"}, "cents": {"N": str(cents)}, **more}
        return {**record(sequence, image, created=self.clock()), "eventSourceARN": f"{SOURCE}/stream/2026"}

    def deliver(self, *records: Any, shard: str = SHARD, **envelope: Any) -> Report:
        event = {"Records": list(records), "shardId": shard, **envelope}
        return self.aggregator.handle(event)

    def own(self) -> list[Any]:
        """All records of the table's own stream."""
        [shard] = self.table.stream.shards()
        return list(self.table.stream.read(shard.id, None, 10_000).records)

    def counts(self) -> tuple[Any, ...]:
        orders = self.counters.get(ORDERS, {"shop": "a"}).measures
        shops = self.counters.get(SHOPS, {}).measures
        return orders["n"], orders["sum"], shops["n"], shops["orders"]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_an_untyped_item_among_the_counts_is_none_of_the_source_table(bench: Bench) -> None:
    item = {"pk": {"S": "X"}, "sk": {"S": "Y"}, "id": {"S": "ORDER#1"}, "shop": {"S": "a"}, "cents": {"N": "5"}}
    bench.table.put_item(TableName="counters", Item=item)
    bench.deliver(*bench.own())
    assert bench.counts() == (0, 0, 0, 0)


@pytest.mark.parametrize("arn", [None, "", "arn:aws:dynamodb:us-east-1:123456789012:table/other/stream/2026"])
def test_a_record_of_another_table_fails_its_batch(bench: Bench, arn: str | None) -> None:
    with pytest.raises(MalformedImageError, match="expected a stream of the table 'counters' or of"):
        bench.deliver({**bench.order(1), "eventSourceARN": arn})
    assert not any(item["pk"]["S"].startswith("SHOP") for item in bench.table.items())


def test_a_source_table_of_the_same_name_in_another_account_is_another_table() -> None:
    bench = Bench("arn:aws:dynamodb:us-east-1:210987654321:table/counters")
    order = {**bench.order(1), "eventSourceARN": "arn:aws:dynamodb:us-east-1:210987654321:table/counters/stream/1"}
    bench.deliver(order)
    bench.deliver(*bench.own())
    assert bench.counts() == (1, 5, 1, 1)


def test_entries_wait_no_longer_than_their_items_and_are_redriven_through_our_stream(bench: Bench) -> None:
    soon, past = int(bench.clock()) + 5 * DAY, int(bench.clock()) + 3 * DAY
    bad = bench.order(1, "NaN", expiresAt={"N": str(soon)}, ttl={"N": str(past)})
    for _ in range(2):
        bench.deliver(bad)
    [entry] = bench.counters.quarantined()
    assert entry.shard == f"{SHARD}@shop"
    assert entry.content["dynamodb"]["NewImage"]["id"] == {"S": "ORDER#1"}
    [item] = [item for item in bench.table.items() if item["_type"] == {"S": "quarantine"}]
    assert int(item["ttl"]["N"]) == soon

    # Counted again by declarations that take it: of both tables, only the redrive is new.
    mended = Aggregate("orders", ORDER, pk="SHOP#{shop}", sk="ORDERS", measures={"n": Count()})
    mend(bench, mended, replace(SHOPS, source=mended))
    assert bench.counters.redrive(entry)
    redriven = bench.own()
    for _ in range(2):
        bench.deliver(*redriven)
    assert bench.counters.get(mended, {"shop": "a"}).measures == {"n": 1}


def test_an_entry_whose_stream_is_unknown_blocks_nothing(bench: Bench) -> None:
    bench.deliver(bench.order(1, "NaN"))
    [entry] = bench.counters.quarantined()
    bench.deploy((ORDERS, SHOPS), source_table=f"{SOURCE}-2")
    bench.counters.redrive(entry)
    bench.deliver(*bench.own())
    [again] = bench.counters.quarantined()
    assert "expected a stream of" in again.reason
