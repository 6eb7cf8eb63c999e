"""Declarations in words tell everything that decides what is counted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dynamodb_counters import Aggregate, Attr, Average, Condition, Count, Event, Histogram, Items, Ranking, Sum, Window
from dynamodb_counters._declarations.words import condition_words, words_of

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
PATH = Items("path", where=Attr("path").exists() & Attr("size").gt(3))


def sales(**more: object) -> Aggregate:
    given = {"pk": "SHOP#{shop}", "sk": "DAY#{at:day}", "measures": {"sales": Count()}} | more
    return Aggregate("sales", more.pop("source", SALE), **{k: v for k, v in given.items() if k != "source"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (sales(), "event sale by shop, at:day: sales (count)"),
        (sales(pk="ALL", sk="ALL"), "event sale in total: sales (count)"),
        (
            sales(measures={"taken": Sum("price"), "price": Average("price"), "few": Sum("n", cap=3)}),
            "event sale by shop, at:day: taken (sum of price), price (average), few (sum of n, at most 3 each)",
        ),
        (
            sales(measures={"by": Histogram("n", at_least=(1, 5))}),
            "event sale by shop, at:day: by (histogram of n, at least 1, 5)",
        ),
        (
            sales(where=Attr("paid").eq(True), on_expiry="subtract", write_shards=4),
            "event sale by shop, at:day: sales (count), on 4 write shards, where paid = True, less what expires",
        ),
        (
            sales(ranking=Ranking(by="sales", leaderboard="ALL")),
            "event sale by shop, at:day: sales (count), ranked by sales",
        ),
        (sales(source=PATH), "items path (path exists and size > 3) by shop, at:day: sales (count)"),
        (
            Aggregate("shops", sales(), pk="ALL", sk="ALL", measures={"n": Count()}),
            "aggregate sales in total: n (count)",
        ),
        (
            Window("pace", SALE, pk="SHOP#{shop}", time="at", retention=timedelta(hours=25), measure=Sum("price")),
            "event sale by shop: sum of price by at to the minute in hours, kept 25 hours",
        ),
        (
            Window("all", SALE, pk="ALL", time="at", precision=timedelta(days=1)),
            "event sale in total: count by at to the day in months, kept for good",
        ),
    ],
)
def test_words(declared: Aggregate | Window, words: str) -> None:
    assert words_of(declared) == words


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Attr("a").is_in(["x", "y"]) & Attr("b").not_exists(), "(a = 'x' or a = 'y') and no b"),
        (~(Attr("a").lt(1) | Attr("a").ge(5)), "not (a < 1 or a ≥ 5)"),
        (Attr("a").begins_with("x") & Attr("b").ne("y") & Attr("c").le(2), "a begins with 'x' and b ≠ 'y' and c ≤ 2"),
    ],
)
def test_conditions(condition: Condition, words: str) -> None:
    assert condition_words(condition) == words
