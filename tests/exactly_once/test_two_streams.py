"""An aggregator that two streams feed: the table's own, and that of the source table it counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from counters_lambda.counting.feeds import Feeds, SourceTable, StreamReader
from dynamodb_counters import Aggregate, Count, Distinct, Items, Sum, TableKeys
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import DAY
from dynamodb_counters.errors import MalformedImageError
from simulation.clock import VirtualClock
from simulation.memory_table import MemoryTable
from simulation.world import World
from tests.unit.fold.streams import record

ORDER = Items("order", pk="ORDER#{order}", keys=TableKeys("id", ttl="expiresAt"))
ORDERS = Aggregate("orders", ORDER, pk="SHOP#{shop}", sk="ORDERS", measures={"n": Count(), "sum": Sum("cents")})
SHOPS = Aggregate("shops", ORDERS, pk="SHOPS", sk="ALL", measures={"n": Count(), "orders": Sum("n")})
SOURCE = "arn:aws:dynamodb:us-east-1:123456789012:table/shop"
SHARD = "shardId-00000001414576573621-f55eea83"


class Shop(World):
    """The table of the counts, whose aggregator counts the items of a source table."""

    def __init__(self, source_table: str = SOURCE) -> None:
        # Complete, as if they had been backfilled.
        super().__init__(ORDERS, SHOPS)
        self.source_table = source_table
        self.deploy(ORDERS, SHOPS)

    def order(self, sequence: int, cents: Any = 5, **more: Any) -> dict[str, Any]:
        image = {"id": {"S": f"ORDER#{sequence}"}, "shop": {"S": "a"}, "cents": {"N": str(cents)}, **more}
        return {**record(sequence, image, created=self.clock()), "eventSourceARN": f"{SOURCE}/stream/2026"}

    def counts(self) -> tuple[Any, ...]:
        orders, shops = self.counters.get(ORDERS, shop="a"), self.counters.get(SHOPS)
        return orders["n"], orders["sum"], shops["n"], shops["orders"]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_an_untyped_item_among_the_counts_is_none_of_the_source_table(shop: Shop) -> None:
    shop.put("X", "Y", id="ORDER#1", shop="a", cents=5)
    shop.deliver_all()
    assert shop.counts() == (0, 0, 0, 0)


@pytest.mark.parametrize("arn", [None, "", "arn:aws:dynamodb:us-east-1:123456789012:table/other/stream/2026"])
def test_a_record_of_another_table_fails_its_batch(shop: Shop, arn: str | None) -> None:
    with pytest.raises(MalformedImageError, match="expected a stream of the table 'counters' or of"):
        shop.deliver([{**shop.order(1), "eventSourceARN": arn}], SHARD)
    assert not any(item["pk"]["S"].startswith("SHOP") for item in shop.table.items())


def test_a_source_table_of_the_same_name_in_another_account_is_another_table() -> None:
    shop = Shop("arn:aws:dynamodb:us-east-1:210987654321:table/counters")
    order = {**shop.order(1), "eventSourceARN": "arn:aws:dynamodb:us-east-1:210987654321:table/counters/stream/1"}
    shop.deliver([order], SHARD)
    shop.deliver_all()
    assert shop.counts() == (1, 5, 1, 1)


def test_entries_wait_no_longer_than_their_items_and_are_redriven_through_our_stream(shop: Shop) -> None:
    soon, past = int(shop.clock()) + 5 * DAY, int(shop.clock()) + 3 * DAY
    bad = shop.order(1, "NaN", expiresAt={"N": str(soon)}, ttl={"N": str(past)})
    for _ in range(2):
        shop.deliver([bad], SHARD)
    [entry] = shop.counters.quarantined()
    assert entry.shard == f"{SHARD}@shop"
    assert entry.content["dynamodb"]["NewImage"]["id"] == {"S": "ORDER#1"}
    [item] = shop.items("quarantine")
    assert int(item["ttl"]["N"]) == soon
    # Counted again by declarations that take it: of both tables, only the redrive is new.
    mended = Aggregate("orders", ORDER, pk="SHOP#{shop}", sk="ORDERS", measures={"n": Count()})
    shop.mend(mended, replace(SHOPS, source=mended))
    assert shop.counters.redrive(entry)
    redriven = shop.records()
    for _ in range(2):
        shop.deliver(redriven)
    assert shop.counters.get(mended, {"shop": "a"}).measures == {"n": 1}


def test_an_entry_whose_stream_is_unknown_blocks_nothing(shop: Shop) -> None:
    shop.deliver([shop.order(1, "NaN")], SHARD)
    [entry] = shop.counters.quarantined()
    shop.source_table = f"{SOURCE}-2"
    shop.deploy(ORDERS, SHOPS)
    shop.counters.redrive(entry)
    shop.deliver_all()
    [again] = shop.counters.quarantined()
    assert "expected a stream of" in again.reason


# Runs over a source table, which only its own code writes to

PAST = 2 * DAY
ENTRY = Items("entry", pk="CUSTOMER#{customer}", sk="ORDER#{order}", keys=TableKeys("PK", "SK", ttl="goneAt"))
SPENT = Aggregate("spent", ENTRY, pk="CUSTOMER#{customer}", sk="SPENT", orders=Count(), cents=Sum("cents"))
BUYERS = Distinct("buyers", ENTRY, pk="SHOP", sk="BUYERS", member="customer")


class Tables(MemoryTable):
    """The table of the counts, and one of orders, which is older than its stream shows."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock, seed=2, shards=2)
        self.orders = self.create(SOURCE, "PK", "SK", seed=1, shards=2)
        self.orders.stream.arn = f"{SOURCE}/stream/2026-11-20T00:00:00.000"

    def describe_table(self, **request: Any) -> Any:
        answer = super().describe_table(**request)
        if request["TableName"] == SOURCE:
            created = datetime.fromtimestamp(self._clock() - 1.5 * PAST, UTC)
            answer["Table"] |= {"CreationDateTime": created, "LatestStreamLabel": created.strftime("%Y-%m-%dT%H:%M:%S")}
        return answer


class Past(World):
    """Twenty orders that the stream has forgotten are counted from now on."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.both = Tables(clock)
        super().__init__(SPENT, BUYERS, table=self.both, clock=clock, source_table=SOURCE, founds=False)
        for number in range(20):
            self.order(number, number)
        clock.advance(PAST)
        self.source_stream.trim(clock() - DAY)
        self.aggregator.handle({})

    @property
    def source_stream(self) -> Any:
        return self.both.orders.stream

    def order(self, number: int, cents: int, customer: str = "ann") -> None:
        key = {"PK": {"S": f"CUSTOMER#{customer}"}, "SK": {"S": f"ORDER#{number}"}}
        self.table.put_item(TableName=SOURCE, Item={**key, "cents": {"N": str(cents)}})

    def cancel(self, number: int) -> None:
        self.table.delete_item(TableName=SOURCE, Key={"PK": {"S": "CUSTOMER#ann"}, "SK": {"S": f"ORDER#{number}"}})

    @property
    def feeds(self) -> Feeds:
        self.source_stream.page_records = 3
        client: Any = self.table
        reader = StreamReader(self.source_stream, self.source_stream.arn, sleep=lambda _: None)
        return Feeds(
            super().feeds.stream, SourceTable(table=Table(SOURCE, client), key_names=("PK", "SK"), stream=reader)
        )

    def counts(self) -> tuple[Any, Any, bool]:
        spent, complete = self.read(SPENT, customer="ann")
        return tuple(spent.values()), self.read(BUYERS.total)[0]["distinct"], complete


def test_items_of_a_source_table_are_counted_while_they_change() -> None:
    shop = Past()
    for number in range(5):
        shop.cancel(number)
    shop.deliver_new()
    assert shop.counts() == ((0, 0), 0, False)
    for progress in shop.backfill(page_items=4).steps():
        if progress.phase == "scanning":
            shop.cancel(5 + progress.done % 5)
            shop.order(100 + progress.done, 7, "bob")
    shop.sleep(1)
    orders = [item for item in shop.both.orders.items() if item["PK"]["S"] == "CUSTOMER#ann"]
    assert shop.counts() == ((len(orders), sum(int(item["cents"]["N"]) for item in orders)), 2, True)
    verifying = shop.verification()
    for _ in verifying.steps():
        shop.order(200, 3, "eve")
    assert (verifying.differences, verifying.compared >= 3) == ([], True)


def test_a_run_waits_for_what_the_source_table_has_that_is_not_logged_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, waited = Past(), 0
    own = [shard.id for shard in shop.both.stream.shards()]
    for progress in shop.backfill().steps():
        if progress.phase == "scanning" and not waited:
            monkeypatch.setattr(shop, "shards", lambda: own)
            shop.cancel(3)
        waited += progress.phase == "draining"
        if waited == 60:
            monkeypatch.undo()
    assert waited >= 60
    assert shop.counts() == ((19, sum(range(20)) - 3), 1, True)
