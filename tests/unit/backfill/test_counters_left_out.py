"""No item says what a `Counter` must hold: runs refuse it by name, and else leave it out; not what is over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counter, Sum
from dynamodb_counters.errors import BackfillError
from tests.exactly_once.test_backfill import Live, backfill, fill, read, spoil, verification

STOCK = Counter("stock", by=("shop", "sku"), left=Count())
SHOPS = Aggregate("shops", STOCK, by="shop", left=Sum("left"))
KINDS = Aggregate("kinds", STOCK, by="sku", kinds=Count())


@pytest.mark.parametrize("run", [backfill, verification])
def test_a_counter_is_refused_by_name(run: Callable[..., Any]) -> None:
    live = Live(STOCK)
    with pytest.raises(BackfillError, match=r"^invalid name='stock': expected what items are counted in, not a Cou"):
        [*run(live.bench, live.stream, names=["stock"]).steps()]


def test_what_is_over_a_counter_is_verified_and_backfilled() -> None:
    live = Live(STOCK, SHOPS)
    for sku in "xy":
        live.bench.counters.increment(STOCK, shop="a", sku=sku, amount=5)
    live.stream.deliver()
    assert live.verify().differences == []
    spoil(live.bench, SHOPS, "left", 2, shop="a")
    assert [(each.name, dict(each.missing)) for each in live.verify().differences] == [("shops", {"left": -2})]

    live.bench.deploy([STOCK, SHOPS, KINDS])
    fill(live.bench, live.stream)
    assert read(live.bench, KINDS, sku="x") == ({"kinds": 1}, True)
    assert read(live.bench, STOCK, shop="a", sku="x") == ({"left": 5}, True)
