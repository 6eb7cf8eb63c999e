"""Resets over each engine: conditional on what they have read, so that what comes between them is not lost."""

from __future__ import annotations

from typing import Any

from dynamodb_counters import Count, Counter, Ranking
from tests.integration.stores import Store

_SITE = Counter("site", n=Count())
_SHOP = Counter("shop", n=Count(), sum=Count(), ranking=Ranking(measure="n", leaderboard="SHOPS"))


def test_a_reset_returns_what_it_took_and_leaves_what_came_later(store: Store) -> None:
    store.counters.increment(_SHOP, {}, amount={"n": 100, "sum": -7})
    assert store.counters.reset(_SHOP, {}) == {"n": 100, "sum": -7}
    assert store.item("shop", "shop")["_score"] == {"N": "0"}

    store.counters.increment(_SHOP, {}, amount={"n": 1, "sum": 3})
    assert store.counters.get(_SHOP, {}, consistent=True).measures == {"n": 1, "sum": 3}
    assert store.item("shop", "shop")["_score"] == {"N": "1"}


def test_two_resets_at_once_share_what_there_is(store: Store) -> None:
    store.counters.increment(_SITE, {}, amount=100)
    others: list[Any] = []

    def other_first(name: str, _: Any) -> None:
        if name == "update_item" and not others:
            others.append(None)
            others[0] = store.counters.reset(_SITE, {})
            store.counters.increment(_SITE, {}, amount=1)

    store.client.before = other_first

    assert store.counters.reset(_SITE, {}) == {"n": 1}
    assert others == [{"n": 100}]
    assert store.counters.get(_SITE, {}, consistent=True).measures == {"n": 0}
