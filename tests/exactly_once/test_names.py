"""The name is the identity: a declaration by another name is another one, and takes nothing from the one before."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Counter, Event, InvalidArgumentError, Sum
from dynamodb_counters._backfill.backfill import Dropping
from dynamodb_counters._control.control import generations_key, read_control
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.groups import group_key
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._timeline.tiers import HOUR
from dynamodb_counters.errors import BackfillError, CheckpointError, RejectedEventError, UnavailableError
from tests.exactly_once.test_backfill import Live, backfill, fill, read

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="ALL", measures={"n": Count()})
STORES = replace(SHOPS, name="stores")
ROWS = replace(SHOPS, name="rows", pk="ROW#{shop}")
STOCK = Counter("stock", pk="ROW#{shop}", sk="ALL", n=Count())
NAMES = ("a", "b", "c")


def _total(source: Aggregate) -> Aggregate:
    return Aggregate("total", source, pk="TOTAL", sk="ALL", measures={"n": Sum("n"), "shops": Count()})


class _Market(Live):
    """A table whose sales are counted, and its stream."""

    def __init__(self, *declared: Declaration, sales: int = 2) -> None:
        super().__init__(*declared)
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
        fill(self.bench, self.stream)
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

    def repair(self) -> int:
        """How many groups were repaired."""
        verifying = self.verify()
        verifying.repair()
        self.deliver()
        return len(verifying.differences)

    def counts(self, declared: Aggregate) -> list[Any]:
        return [read(self.bench, declared, shop=name)[0].get("n", 0) for name in NAMES]

    def stored(self) -> list[Any]:
        """Numbers in the items of `SHOPS`, which nothing reads once it is removed."""
        held = {item["pk"]["S"]: int(item["n"]["N"]) for item in self.items("shops")}
        return [held.get(f"SHOP#{name}", 0) for name in NAMES]

    def is_whole(self, declared: Aggregate, **values: str) -> bool:
        return read(self.bench, declared, **values)[1]

    def redrive(self) -> None:
        for record in self.bench.counters.quarantined():
            self.bench.counters.redrive(record)
        self.deliver()

    def items(self, name: str) -> list[Any]:
        return [item for item in self.bench.table.items() if item.get("_type") == {"S": name}]


def test_a_new_name_counts_from_the_start_and_the_old_one_stays_as_it_was() -> None:
    market = _Market(SHOPS)
    market.deploy(STORES)
    market.sell("a")
    assert (market.stored(), market.counts(STORES)) == ([2, 2, 2], [1, 0, 0])
    assert not market.is_whole(STORES, shop="a")
    market.backfill()
    assert (market.stored(), market.counts(STORES)) == ([2, 2, 2], [3, 2, 2])
    assert market.is_whole(STORES, shop="a")
    # The old name, declared again, goes on where it was.
    market.deploy(SHOPS)
    market.sell("b")
    assert (market.counts(SHOPS), market.is_whole(SHOPS, shop="b")) == ([2, 3, 2], False)


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


def test_a_direct_count_never_changes_an_item_of_another_name() -> None:
    market = _Market(SHOPS, _total(SHOPS))
    counters = market.bench.counters
    # Without the item, nothing says which names are counted.
    market.bench.table.delete_item(TableName=market.bench.table.name, Key=generations_key())
    stock = Counter("stock", pk=SHOPS.pk, sk=SHOPS.sk, n=Count())
    expected = r"invalid aggregate='stock': expected 'shops', which has written the item of this group"
    with pytest.raises(InvalidArgumentError, match=expected):
        counters.increment(stock, {"shop": "a"})
    with pytest.raises(InvalidArgumentError, match=expected):
        counters.reset(stock, {"shop": "a"})
    with pytest.raises(RejectedEventError, match=r"'stores' cannot count it: an item of its group is of 'shops'"):
        counters.record_once(SALE, {"id": 99, "shop": "a"}, [STORES])
    market.deliver()
    assert (market.counts(SHOPS), len(market.items("shops"))) == ([2, 2, 2], 3)
    assert read(market.bench, _total(SHOPS)) == ({"n": 6, "shops": 3}, False)


def test_a_name_that_comes_back_with_another_meaning_begins_in_items_of_its_own() -> None:
    market = _Market(SHOPS, replace(SHOPS, name="other", pk="OTHER#{shop}"))
    market.deploy(replace(SHOPS, name="other", pk="OTHER#{shop}"), days=3)
    market.deploy(replace(SHOPS, sk="ELSEWHERE", where=Attr("shop").eq("a")))
    market.sell(*NAMES)
    again = replace(SHOPS, sk="ELSEWHERE", where=Attr("shop").eq("a"))
    assert (market.counts(again), market.is_whole(again, shop="a")) == ([1, 0, 0], False)
    assert len(market.items("shops")) == 3


def test_a_name_comes_back_to_its_own_items_after_a_run_that_began_before_it() -> None:
    """The run's first era has the run's generation alone, which readers never used."""
    market = _Market(SHOPS)
    market.bench.declare([SHOPS, ROWS])
    next(backfill(market.bench, market.stream).steps())
    market.deploy(SHOPS)
    market.deploy(SHOPS, ROWS)
    assert read_control(market.bench.store).reads["rows"] == 0


def test_a_counter_is_whole_at_once_and_goes_on_when_it_changes() -> None:
    market = _Market(SHOPS)
    market.bench.declare([SHOPS, STOCK])
    with pytest.raises(BackfillError, match="nothing to backfill"):
        market.backfill()
    market.bench.counters.increment(STOCK, shop="a")
    assert read(market.bench, STOCK, shop="a") == ({"n": 1}, True)
    sold = Counter("stock", pk=STOCK.pk, sk=STOCK.sk, n=Count(), sold=Count())
    market.deploy(SHOPS, sold)
    market.bench.counters.increment(sold, {"shop": "a"}, amount={"sold": 2})
    assert read(market.bench, sold, shop="a") == ({"n": 1, "sold": 2}, True)


@pytest.mark.parametrize(
    "changed",
    [
        Counter("stock", pk="STOCK#{shop}", sk="ALL", n=Count()),
        replace(ROWS, name="stock"),
        Counter("shops", pk=SHOPS.pk, sk=SHOPS.sk, n=Count()),
    ],
    ids=["other keys", "no counter any more", "no counter before"],
)
def test_a_counter_keeps_its_keys_and_stays_one(changed: Aggregate) -> None:
    market = _Market(SHOPS, STOCK)
    with pytest.raises(CheckpointError, match=f"{changed.name}: a Counter keeps its keys, and stays one"):
        market.deploy(changed)


def test_what_the_stream_counts_takes_no_increment() -> None:
    counter = Counter("shops", pk=SHOPS.pk, sk=SHOPS.sk, n=Count())
    for deployed, declared in ((SHOPS, SHOPS), (SHOPS, counter), (counter, SHOPS)):
        market = _Market(deployed)
        for change in (market.bench.counters.increment, market.bench.counters.reset):
            with pytest.raises(InvalidArgumentError, match="invalid counter='shops': expected a Counter: what the str"):
                change(declared, shop="a")  # type: ignore[arg-type]
        assert market.counts(deployed) == ([2, 2, 2] if deployed is SHOPS else [0, 0, 0])


def test_the_keys_of_what_is_gone_are_taken_whatever_its_name() -> None:
    market = _Market(SHOPS)
    market.deploy(replace(SHOPS, name="other", pk="OTHER#{shop}"), days=3)
    market.deploy(replace(SHOPS, name="other", pk="OTHER#{shop}"), replace(STORES, measures={"n": Sum("id")}))
    market.sell("a")
    assert market.counts(STORES) == [7, 0, 0]
    [key] = ItemLayout(SHOPS).keys(group_key(SHOPS, {"shop": "a"}))
    assert spoiled_free(market, key) == {"N": "2"}


def spoiled_free(market: _Market, key: Any) -> Any:
    return market.bench.table.get_item(TableName=market.bench.table.name, Key=key)["Item"]["n"]


def test_a_direct_count_in_a_name_that_no_deployment_counts_is_refused() -> None:
    market = _Market(SHOPS)
    counters = market.bench.counters
    sold = {"id": 99, "shop": "d"}
    with pytest.raises(UnavailableError, match="invalid declaration='rows'"):
        counters.record_once(SALE, sold, [ROWS])
    with pytest.raises(InvalidArgumentError, match="invalid declaration='stock'"):
        counters.increment(STOCK, shop="d")
    with pytest.raises(InvalidArgumentError, match="invalid declaration='stock'"):
        counters.reset(STOCK, shop="d")
    # A declaration that takes the keys takes nothing over.
    columns = replace(ROWS, name="columns")
    market.deploy(SHOPS, columns, days=1)
    assert counters.record_once(SALE, sold, [SHOPS, columns]).is_accepted
    market.deliver()
    market.backfill()
    assert read(market.bench, columns, shop="d") == ({"n": 1}, True)


def test_a_direct_count_in_a_new_name_waits_for_its_takeover_alone() -> None:
    market = _Market(SHOPS)
    with pytest.raises(InvalidArgumentError, match="invalid declaration='stock'"):
        market.bench.counters.increment(STOCK, shop="a")
    market.bench.declare([SHOPS, STOCK])
    assert market.bench.counters.increment(STOCK, shop="a") == {"n": 1}


def test_a_direct_count_in_a_name_that_is_counted_no_more_stays_with_it() -> None:
    market = _Market(SHOPS, STOCK)
    market.deploy(STORES, days=1)
    assert market.bench.counters.increment(STOCK, shop="d") == {"n": 1}
    assert market.bench.counters.record_once(SALE, {"id": 99, "shop": "d"}, [SHOPS]).is_accepted
    market.deliver()
    market.backfill()
    assert spoiled_free(market, ItemLayout(SHOPS).keys(group_key(SHOPS, {"shop": "d"}))[0]) == {"N": "1"}
    assert read(market.bench, STORES, shop="d") == ({"n": 1}, True)


def test_a_table_whose_declarations_were_all_removed_takes_no_new_direct_count() -> None:
    market = _Market(STOCK)
    market.deploy()
    with pytest.raises(InvalidArgumentError, match="invalid declaration='other'"):
        market.bench.counters.increment(Counter("other", by="shop"), shop="d")
    assert market.bench.counters.increment(STOCK, shop="d") == {"n": 1}


def test_a_removed_name_that_comes_back_as_a_counter_begins_at_nothing() -> None:
    market = _Market(SHOPS, ROWS)
    market.deploy(ROWS, days=3)
    counter = Counter("shops", pk=SHOPS.pk, sk=SHOPS.sk, n=Count())
    market.deploy(ROWS, counter)
    assert set(market.counts(counter)) == {0}
