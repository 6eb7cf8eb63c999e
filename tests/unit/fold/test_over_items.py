"""Aggregates over events and foreign items: lists, nested attributes, exact numbers, spread, no needless write."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Average, Count, Event, Histogram, Items, Ranking, Sum
from tests.unit.fold.world import World

POST = Event("post", pk="POST#{id}", sk="POST")
TOTAL = Aggregate("total", POST, pk="TOTAL", sk="TOTAL", measures={"sum": Sum("x"), "mean": Average("x")})


@pytest.mark.parametrize(
    ("numbers", "total"),
    [
        ([Decimal("0." + "1" * 38), Decimal("0." + "2" * 38)], Decimal("0." + "3" * 38)),
        ([10**37, 1], 10**37 + 1),
        ([Decimal("1E-130"), Decimal("2E-130")], Decimal("3E-130")),
        ([Decimal("1234567890123456789.0123456789012345678"), -1], Decimal("1234567890123456788.0123456789012345678")),
        ([Decimal("9E+125"), Decimal("-9E+125")], 0),
    ],
)
def test_sums_are_exact_to_38_digits(numbers: list[Any], total: Any) -> None:
    world = World([TOTAL])
    for place, number in enumerate(numbers):
        world.put(POST, {"id": str(place), "x": number})
        world.settle()

    assert world.measures(TOTAL)["sum"] == total
    assert str(world.measures(TOTAL)["sum"]) == str(total)


def test_a_correction_that_changes_no_number_writes_nothing() -> None:
    ranked = Aggregate(
        "ranked",
        POST,
        pk="AUTHOR#{author}",
        sk="ALL",
        measures={"capped": Sum("words", cap=10), "bins": Histogram("words", bounds=[0, 10])},
        ranking=Ranking(measure="capped", leaderboard="AUTHORS"),
    )
    over = Aggregate("over", ranked, pk="OVER", sk="ALL", measures={"n": Count(), "all": Sum("capped")})
    world = World([ranked, over])
    world.put(POST, {"id": "1", "author": "ann", "words": 12})
    world.settle()
    writes = world.client.updates

    world.put(POST, {"id": "1", "author": "ann", "words": Decimal("99.5"), "title": "new"})
    world.settle()

    assert world.client.updates == writes


def test_foreign_items_count_while_they_are_what_is_meant_and_what_counts_them_never_is() -> None:
    paths = Items("paths", where=Attr("submitted").exists() & Attr("pk").begins_with("FOREIGN#"))
    # Its own items would satisfy the condition, were they not its own.
    count = Aggregate("count", paths, pk="FOREIGN#{player}", sk="COUNT", measures={"submitted": Count()})
    world = World([count])
    world.put(paths, {"player": "ann", "submitted": "x"}, key="1")
    world.put(paths, {"player": "ann", "submitted": "x"}, key="2")
    world.put(paths, {"player": "ann"}, key="3")
    world.settle()
    assert world.measures(count, player="ann") == {"submitted": 2}

    world.put(paths, {"player": "ann"}, key="2")
    world.put(paths, {"player": "bob", "submitted": "x"}, key="1")
    world.settle()
    assert world.measures(count, player="ann") == {"submitted": 0}
    assert world.measures(count, player="bob") == {"submitted": 1}
