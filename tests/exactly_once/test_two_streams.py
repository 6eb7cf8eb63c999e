"""An aggregator that two streams feed: the table's own, and that of the source table it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Items, Sum, TableKeys
from dynamodb_counters._timeline.tiers import DAY
from dynamodb_counters.errors import MalformedImageError
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
