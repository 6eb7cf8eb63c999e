"""Names and direct counts: what counts without the stream asks the registry, and touches no item of another name."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counter, Event, InvalidArgumentError, Sum
from dynamodb_counters._control.registry import entry_key, header_key
from dynamodb_counters._declarations import Declaration
from dynamodb_counters.errors import RejectedEventError, UnavailableError, UncountedError
from simulation.world import World

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="ALL", measures={"n": Count()})
ROWS = Aggregate("rows", SALE, pk="ROW#{shop}", sk="ALL", measures={"n": Count()})
TOTAL = Aggregate("total", SHOPS, pk="TOTAL", sk="ALL", measures={"n": Sum("n"), "shops": Count()})
STOCK = Counter("stock", pk="STOCK#{shop}", sk="ALL", n=Count())
NAMES = ("a", "b", "c")


class Market(World):
    """A table whose sales are counted, and its stream."""

    def __init__(self, *declared: Declaration) -> None:
        super().__init__(*declared)
        self._sold = 0
        for _ in range(2):
            self.sell(*NAMES)

    def sell(self, *shops: str) -> None:
        for shop in shops:
            self._sold += 1
            self.counters.accept(SALE, {"id": self._sold, "shop": shop})
        self.settle()

    def counts(self, declared: Aggregate) -> list[Any]:
        return [self.read(declared, shop=name)[0].get("n", 0) for name in NAMES]


def test_a_direct_count_never_changes_an_item_of_another_name() -> None:
    market = Market(SHOPS, TOTAL)
    counters = market.counters
    # Without the registry, nothing says which names are counted.
    for key in (header_key(), *map(entry_key, ("shops", "total"))):
        market.delete(key)
    stock = Counter("stock", pk=SHOPS.pk, sk=SHOPS.sk, n=Count())
    stores = Aggregate("stores", SALE, pk=SHOPS.pk, sk=SHOPS.sk, measures={"n": Count()})
    expected = r"invalid aggregate='stock': expected 'shops', which has written the item of this group"
    with pytest.raises(InvalidArgumentError, match=expected):
        counters.increment(stock, {"shop": "a"})
    with pytest.raises(InvalidArgumentError, match=expected):
        counters.reset(stock, {"shop": "a"})
    with pytest.raises(RejectedEventError, match=r"'stores' cannot count it: an item of its group is of 'shops'"):
        counters.record_once(SALE, {"id": 99, "shop": "a"}, [stores])
    assert market.counts(SHOPS) == [2, 2, 2]


def test_what_the_stream_counts_takes_no_increment() -> None:
    market = Market(SHOPS)
    for declared in (SHOPS, Counter("shops", pk=SHOPS.pk, sk=SHOPS.sk, n=Count())):
        for change in (market.counters.increment, market.counters.reset):
            with pytest.raises(InvalidArgumentError, match=r"expected (a Counter: what the str|the definition)"):
                change(declared, shop="a")  # type: ignore[arg-type]
    assert market.counts(SHOPS) == [2, 2, 2]


def test_a_direct_count_in_a_name_that_nothing_counts_is_refused_until_it_is_registered() -> None:
    market = Market(SHOPS)
    counters, sold = market.counters, {"id": 99, "shop": "d"}
    with pytest.raises(UnavailableError, match="invalid declaration='rows'"):
        counters.record_once(SALE, sold, [ROWS])
    for change in (counters.increment, counters.reset):
        with pytest.raises(UncountedError, match="invalid declaration='stock'"):
            change(STOCK, shop="d")
    market.declared = (SHOPS, ROWS, STOCK)
    market.process().handle({})
    # Whoever was refused does not wait until what it has read is old.
    assert counters.increment(STOCK, shop="d") == {"n": 1}
    assert counters.record_once(SALE, sold, [SHOPS, ROWS]).status == "accepted"
    market.settle()
    market.fill()
    assert market.read(ROWS, shop="d") == ({"n": 1}, True)


def test_a_transaction_leaves_to_the_stream_what_is_not_complete() -> None:
    market = Market(SHOPS)
    market.deploy(SHOPS, ROWS)
    market.settle()
    phases = set[str]()
    for step in market.backfill().steps():
        if step.phase not in phases:
            phases.add(step.phase)
            market.counters.record_once(SALE, {"id": f"in {step.phase}", "shop": "a"}, [SHOPS, ROWS])
    market.settle()
    assert phases >= {"waiting", "scanning", "draining", "adding"}
    for declared in (SHOPS, ROWS):
        assert market.counts(declared) == [2 + len(phases), 2, 2]
    assert market.missing() == []
