"""The name is the identity: a declaration by another name is another one, and takes nothing from the one before."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Distinct, Event, Histogram, InvalidArgumentError, Items, Sum
from dynamodb_counters._backfill.dropping import Dropping
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.groups import group_keys
from dynamodb_counters._timeline.times import DAY, HOUR
from dynamodb_counters.errors import BackfillError, RejectedEventError
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import Stream, backfill, read, verification

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="ALL", measures={"n": Count()})
STORES = replace(SHOPS, name="stores")
NAMES = ("a", "b", "c")


def _total(source: Aggregate) -> Aggregate:
    return Aggregate("total", source, pk="TOTAL", sk="ALL", measures={"n": Sum("n"), "shops": Count()})


class _Market:
    """A table whose sales are counted, and its stream."""

    def __init__(self, *declared: Declaration, sales: int = 2) -> None:
        self.bench = Workbench(declared)
        self.bench.aggregator.handle({})
        self.stream = Stream(self.bench)
        self._sold = 0
        for _ in range(sales):
            self.sell(*NAMES)

    def sell(self, *shops: str, **values: Any) -> None:
        for shop in shops:
            self._sold += 1
            self.bench.counters.accept(SALE, {"id": self._sold, "shop": shop, **values})
        self.deliver()

    def deliver(self) -> None:
        for _ in range(3):
            self.stream.deliver()

    def deploy(self, *declared: Declaration, days: float = 0) -> None:
        self.bench.deploy(declared, as_declared=True)
        self.wait(days)

    def backfill(self, days: float = 0) -> None:
        assert [*backfill(self.bench, self.stream).steps()][-1].phase == "complete"
        self.bench.clock.advance(61)
        self.wait(days)

    def wait(self, days: float) -> None:
        """Let days pass in which there is traffic."""
        self.deliver()
        self.bench.aggregator.handle({})
        for number in range(int(48 * days)):
            self.bench.clock.advance(HOUR / 2)
            other = {"pk": {"S": "OTHER"}, "sk": {"S": "ITEM"}, "number": {"N": str(number)}}
            self.bench.table.put_item(TableName=self.bench.table.name, Item=other)
            self.deliver()

    def drop(self, *names: str) -> dict[str, int]:
        dropping = Dropping(table=self.bench.store, now=self.bench.clock, names=names)
        for _ in dropping.steps():
            pass
        self.deliver()
        return dict(dropping.dropped)

    def verify(self) -> Verification:
        verifying = verification(self.bench, self.stream)
        for _ in verifying.steps():
            pass
        return verifying

    def repair(self) -> int:
        """How many groups were repaired."""
        verifying = self.verify()
        verifying.repair()
        self.deliver()
        return len(verifying.differences)

    def counts(self, declared: Aggregate) -> list[Any]:
        return [read(self.bench, declared, shop=name)[0].get("n", 0) for name in NAMES]

    def is_whole(self, declared: Aggregate, **values: str) -> bool:
        return read(self.bench, declared, **values)[1]

    def redrive(self) -> None:
        for record in self.bench.counters.quarantined():
            self.bench.counters.redrive(record)
        self.deliver()

    def items(self, name: str) -> list[Any]:
        return [item for item in self.bench.table.items() if item.get("_type") == {"S": name}]


def test_a_new_name_counts_anew_and_the_old_one_stays_as_it_was() -> None:
    market = _Market(SHOPS)
    market.deploy(STORES)
    market.sell("a")
    assert (market.counts(SHOPS), market.counts(STORES)) == ([2, 2, 2], [1, 0, 0])
    assert not market.is_whole(STORES, shop="a")
    market.backfill()
    assert (market.counts(SHOPS), market.counts(STORES)) == ([2, 2, 2], [3, 2, 2])
    assert market.is_whole(STORES, shop="a")
    # The old name, declared again, goes on where it was.
    market.deploy(SHOPS)
    market.sell("b")
    assert (market.counts(SHOPS), market.is_whole(SHOPS, shop="b")) == ([2, 3, 2], False)


def test_a_drop_of_the_old_name_leaves_the_new_one_alone() -> None:
    market = _Market(SHOPS)
    market.deploy(STORES)
    market.sell("a")
    market.backfill(days=3)
    assert market.drop("shops") == {"shops": 3, "stores~1": 1}
    assert (market.counts(STORES), market.items("shops")) == ([3, 2, 2], [])


def test_a_drop_after_a_redefinition_leaves_every_live_group_alone() -> None:
    market = _Market(SHOPS)
    market.deploy(replace(SHOPS, where=Attr("id").gt(0)))
    market.backfill()
    market.deploy(replace(STORES, where=Attr("id").gt(0)))
    market.sell("a")
    market.backfill(days=3)
    # What is no longer declared is dropped when it is named.
    assert market.drop() == {"stores~2": 1}
    assert (market.counts(STORES), market.repair()) == ([3, 2, 2], 0)
    assert market.drop("shops") == {"shops": 3, "shops~1": 3}
    assert (market.counts(STORES), market.repair()) == ([3, 2, 2], 0)


@pytest.mark.parametrize("name", ["sale", "shops", "stores", "unheard-of"])
def test_a_drop_takes_neither_events_nor_what_is_declared(name: str) -> None:
    market = _Market(SHOPS)
    market.deploy(STORES)
    with pytest.raises(BackfillError, match="expected one that was removed two days ago, or earlier"):
        market.drop(name)
    assert len(market.items("sale")) == 6


def test_a_drop_takes_no_items_that_an_event_may_have_written() -> None:
    market = _Market(SHOPS)
    event = replace(SALE, name="shops")
    market.deploy(replace(STORES, pk="STORE#{shop}", source=event), days=3)
    market.bench.counters.accept(event, {"id": 99, "shop": "a"})
    with pytest.raises(BackfillError, match="invalid name='shops'"):
        market.drop("shops")
    market.deploy(SHOPS, days=3)
    assert (market.drop(), len(market.items("shops"))) == ({}, 4)


def test_what_counts_a_source_that_has_another_name_waits_and_stays_right() -> None:
    market = _Market(SHOPS, _total(SHOPS))
    market.deploy(STORES, _total(STORES), days=3)
    market.sell("a")
    assert read(market.bench, _total(STORES)) == ({"n": 7, "shops": 3}, True)
    assert market.repair() == 0
    market.backfill()
    assert read(market.bench, _total(STORES)) == ({"n": 7, "shops": 3}, True)
    market.sell("b")
    assert market.repair() == 0
    assert read(market.bench, _total(STORES)) == ({"n": 8, "shops": 3}, True)


def test_a_distinct_by_another_name_counts_its_members_after_a_backfill() -> None:
    buyers, customers = (Distinct(name, SALE, pk="BUYERS", sk="ALL", member="shop") for name in ("buyers", "customers"))
    market = _Market(*buyers.parts, sales=0)
    market.sell(*"abcd")
    market.deploy(*customers.parts, days=3)
    market.sell("e")
    assert not market.is_whole(customers.total)
    market.backfill()
    assert read(market.bench, customers.total) == ({"distinct": 5}, True)
    assert market.repair() == 0
    assert read(market.bench, customers.total) == ({"distinct": 5}, True)
    assert read(market.bench, buyers.total)[0] == {"distinct": 4}


def test_a_histogram_over_a_new_name_has_every_group_after_a_backfill() -> None:
    market = _Market(SHOPS)
    sizes = Aggregate("sizes", STORES, pk="SIZES", sk="ALL", measures={"n": Histogram("n", exactly=[2, 3])})
    market.deploy(STORES, days=3)
    market.sell("a")
    market.deploy(STORES, sizes)
    market.backfill()
    assert read(market.bench, sizes) == ({"n": {2: 2, 3: 1}}, True)


def test_a_spoiled_group_of_a_new_name_is_found() -> None:
    market = _Market(SHOPS)
    market.deploy(STORES)
    market.backfill(days=3)
    held = next(item for item in market.bench.table.items() if item.get("_type") == {"S": "stores~2"})
    key = {name: held[name] for name in ("pk", "sk")}
    market.bench.table.update_item(
        TableName=market.bench.table.name,
        Key=key,
        UpdateExpression="ADD n :by",
        ExpressionAttributeValues={":by": {"N": "5"}},
    )
    assert market.repair() == 1
    assert market.counts(STORES) == [2, 2, 2]


def test_items_that_expire_stay_in_what_the_old_name_has_counted() -> None:
    cart = Items("cart", where=Attr("price").exists())
    carts = Aggregate("carts", cart, pk="CARTS", sk="ALL", measures={"n": Count()})
    baskets = replace(carts, name="baskets")
    market = _Market(carts, sales=0)
    bench = market.bench
    for number in range(5):
        item = {"pk": {"S": f"CART#{number}"}, "sk": {"S": "CART"}, "price": {"N": "1"}}
        expiry = {"ttl": {"N": str(int(bench.clock()) + 3600)}} if number < 3 else {}
        bench.table.put_item(TableName=bench.table.name, Item=item | expiry)
    market.deliver()
    bench.clock.advance(DAY / 2)
    bench.table.expire()
    market.deliver()
    market.deploy(baskets, days=3)
    market.backfill()
    assert (read(bench, carts)[0], read(bench, baskets)) == ({"n": 5}, ({"n": 2}, True))
    market.repair()
    assert (read(bench, carts)[0], read(bench, baskets)) == ({"n": 5}, ({"n": 2}, True))


def test_an_expiry_of_a_group_is_subtracted_above_a_new_name() -> None:
    daily = Aggregate(
        "daily", SALE, pk="SHOP#{shop}", sk="DAY#{at:day}", measures={"n": Count()}, retention=timedelta(days=5)
    )
    over = Aggregate("over", daily, pk="OVER", sk="ALL", measures={"n": Sum("n")}, on_expiry="subtract")
    market = _Market(daily, over, sales=0)
    market.sell("a", "b", at=int(market.bench.clock()))
    days = replace(daily, name="days")
    above = replace(over, source=days)
    market.deploy(days, above)
    market.backfill(days=3)
    market.deploy(days, above, SHOPS)
    assert read(market.bench, above) == ({"n": 2}, True)
    market.wait(days=6)
    market.bench.table.expire()
    market.deliver()
    assert read(market.bench, above)[0] == {"n": 0}


def test_a_delta_that_waits_is_counted_by_the_name_it_waits_for() -> None:
    sums = replace(SHOPS, measures={"amount": Sum("amount")})
    market = _Market(sums, sales=0)
    market.sell("a", amount=10**37)
    market.sell("a", amount=Decimal("0.5"))
    assert [record.reason for record in market.bench.counters.quarantined()] == [
        "DynamoDB only supports precision up to 38 digits"
    ]
    market.bench.counters.retract(SALE, {"id": 1})
    market.deploy(replace(sums, name="stores"), days=3)
    market.redrive()
    assert len(list(market.bench.counters.quarantined())) == 1
    market.deploy(sums)
    market.redrive()
    assert list(market.bench.counters.quarantined()) == []
    assert read(market.bench, sums, shop="a")[0] == {"amount": Decimal("0.5")}


def test_an_image_that_waits_for_the_old_name_and_its_correction_for_the_new_one_cancel_out() -> None:
    sale = replace(SALE, version="version")
    summed = replace(SHOPS, source=sale, measures={"n": Count(), "amount": Sum("amount")})
    stores = replace(summed, name="stores")
    market = _Market(summed, sales=0)

    def accept(number: int, version: int, **values: Any) -> None:
        market.bench.counters.accept(sale, {"id": number, "shop": "a", "version": version, **values})
        market.deliver()

    accept(1, 1, amount=1)
    accept(2, 1)
    market.deploy(stores, days=3)
    accept(2, 2, amount=1)
    mended = replace(stores, measures={"n": Count()}, on_change="keep")
    market.deploy(mended, days=3)
    market.redrive()
    market.backfill()
    market.redrive()
    assert read(market.bench, mended, shop="a") == ({"n": 2}, True)


def test_what_a_transaction_has_counted_is_counted_by_a_new_name_and_taken_back() -> None:
    market = _Market(SHOPS, sales=0)
    for number in (1, 2):
        market.bench.counters.record_once(SALE, {"id": number, "shop": "a"}, [SHOPS])
    market.deploy(STORES, days=3)
    market.backfill()
    assert (market.counts(STORES), market.is_whole(STORES, shop="a")) == ([2, 0, 0], True)
    market.bench.counters.retract(SALE, {"id": 1})
    market.deliver()
    assert market.counts(STORES) == [1, 0, 0]
    assert market.repair() == 0


def test_a_writer_that_still_has_the_old_name_leaves_the_new_one_alone() -> None:
    market = _Market(SHOPS, _total(SHOPS))
    market.deploy(STORES, _total(STORES))
    market.backfill(days=3)
    market.bench.counters.increment(SHOPS, {"shop": "a"}, amount=5)
    market.sell("a")
    assert (market.counts(SHOPS)[0], market.counts(STORES)) == (7, [3, 2, 2])
    assert read(market.bench, _total(STORES)) == ({"n": 7, "shops": 3}, True)


def test_a_writer_with_a_name_that_is_not_deployed_yet_is_refused_where_another_has_written() -> None:
    market = _Market(SHOPS, _total(SHOPS))
    counters = market.bench.counters
    expected = r"invalid aggregate='stores': expected 'shops', which has written the item of this group"
    with pytest.raises(InvalidArgumentError, match=expected):
        counters.increment(STORES, {"shop": "a"})
    with pytest.raises(InvalidArgumentError, match=expected):
        counters.reset(STORES, {"shop": "a"})
    with pytest.raises(RejectedEventError, match=r"'stores' cannot count it: an item of its group is of 'shops'"):
        counters.record_once(SALE, {"id": 99, "shop": "a"}, [STORES])
    market.deliver()
    assert (market.counts(SHOPS), len(market.items("shops"))) == ([2, 2, 2], 3)
    assert read(market.bench, _total(SHOPS)) == ({"n": 6, "shops": 3}, True)


def test_what_a_writer_adds_ahead_to_a_fresh_group_of_another_name_counts_there() -> None:
    market = _Market(SHOPS, sales=0)
    market.bench.counters.increment(STORES, {"shop": "a"}, amount={"n": 100})
    market.sell("a")
    assert market.counts(SHOPS) == [101, 0, 0]
    market.deploy(STORES)
    assert market.counts(STORES) == [0, 0, 0]


def test_a_name_that_comes_back_with_another_meaning_begins_in_items_of_its_own() -> None:
    market = _Market(SHOPS, replace(SHOPS, name="other", pk="OTHER#{shop}"))
    market.deploy(replace(SHOPS, name="other", pk="OTHER#{shop}"), days=3)
    market.deploy(replace(SHOPS, sk="ELSEWHERE", where=Attr("shop").eq("a")))
    market.sell(*NAMES)
    again = replace(SHOPS, sk="ELSEWHERE", where=Attr("shop").eq("a"))
    assert (market.counts(again), market.is_whole(again, shop="a")) == ([1, 0, 0], False)
    assert len(market.items("shops")) == 3


def test_the_keys_of_what_is_gone_are_taken_whatever_its_name() -> None:
    market = _Market(SHOPS)
    market.deploy(replace(SHOPS, name="other", pk="OTHER#{shop}"), days=3)
    market.deploy(replace(SHOPS, name="other", pk="OTHER#{shop}"), replace(STORES, measures={"n": Sum("id")}))
    market.sell("a")
    assert market.counts(STORES) == [7, 0, 0]
    [key] = group_keys(SHOPS, {"shop": "a"})
    assert spoiled_free(market, key) == {"N": "2"}


def spoiled_free(market: _Market, key: Any) -> Any:
    return market.bench.table.get_item(TableName=market.bench.table.name, Key=key)["Item"]["n"]
