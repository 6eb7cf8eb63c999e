"""Closed periods of windows that are added, renamed, or repaired: totals add up to what is counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from dynamodb_counters import Event, IncompleteError, Statement, Window
from tests.exactly_once.test_backfill import Live, fill

SALE = Event("sale", key=("shop", "id"))
SALES = Window("sales", SALE, by="shop", time="at", longest=timedelta(days=366))
OTHERS = replace(SALES, name="others", pk="OTHERS#{shop}")
RENAMED = replace(SALES, name="sold", pk="SOLD#{shop}")


class _Shop(Live):
    def __init__(self, *windows: Window) -> None:
        super().__init__(*windows)
        self._sold = 0
        self.sell("2026-10-05T10:00:00Z", "2026-10-06T10:00:00Z", "2026-11-01T10:00:00Z")

    def sell(self, *times: str) -> None:
        for at in times:
            self._sold += 1
            self.bench.counters.accept(SALE, {"shop": "a", "id": self._sold, "at": at})
        for _ in range(3):
            self.stream.deliver()

    def close(self, window: Window) -> Statement:
        return self.bench.counters.window(window, shop="a").close("month", "2026-10")

    def november(self, window: Window) -> Statement:
        return self.bench.counters.window(window, shop="a").statement("month", "2026-11", consistent=True)


def test_a_window_that_was_added_is_closed_once_it_is_backfilled() -> None:
    shop = _Shop(OTHERS)
    shop.bench.deploy([OTHERS, SALES], as_declared=True)
    shop.sell()
    with pytest.raises(IncompleteError):
        shop.close(SALES)
    fill(shop.bench, shop.stream)
    assert shop.close(SALES).total == 2


def test_a_renamed_window_begins_with_a_first_period_of_its_own() -> None:
    shop = _Shop(SALES)
    assert shop.close(SALES).total == 2
    shop.bench.deploy([RENAMED], as_declared=True)
    shop.sell("2026-10-07T10:00:00Z")
    fill(shop.bench, shop.stream)
    assert shop.bench.counters.window(RENAMED, shop="a").closed() == []
    assert (shop.close(RENAMED).total, shop.november(RENAMED).adjustment) == (3, 0)


def test_a_repair_of_closed_periods_is_an_adjustment() -> None:
    shop = _Shop(SALES)
    [month] = [item for item in shop.bench.table.items() if item["sk"]["S"].endswith("#2026-10")]
    spoiled = month | {"total": {"N": "6"}, "d05": {"N": "5"}}
    shop.bench.table.put_item(TableName=shop.bench.table.name, Item=spoiled)
    assert shop.close(SALES).total == 2 + 4
    verifying = shop.verify()
    verifying.repair()
    for _ in range(3):
        shop.stream.deliver()
    assert (shop.close(SALES).total, shop.november(SALES).adjustment) == (6, -4)
