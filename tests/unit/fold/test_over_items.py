"""Aggregates over events and foreign items: lists, nested attributes, exact numbers, spread, no needless write."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Average, Count, Distinct, Event, Histogram, Items, Ranking, Sum
from tests.unit.fold.world import World

POST = Event("post", pk="POST#{id}", sk="POST")
TAGS = Aggregate("tags", POST, pk="TAG#{tags[]}", sk="STATISTICS", measures={"posts": Count(), "words": Sum("words")})
TOTAL = Aggregate("total", POST, pk="TOTAL", sk="TOTAL", measures={"sum": Sum("x"), "mean": Average("x")})


def _tags(world: World) -> dict[str, int]:
    return {tag: world.measures(TAGS, **{"tags[]": tag})["posts"] for tag in ("a", "b", "c", "7")}


def test_an_event_counts_once_under_each_of_its_tags() -> None:
    world = World([TAGS])
    world.put(POST, {"id": "1", "tags": ["a", "b", "a", 7], "words": 10})
    world.put(POST, {"id": "2", "tags": {"b", "c"}, "words": 1})
    world.put(POST, {"id": "3", "tags": {7, 8}, "words": 1})
    world.put(POST, {"id": "4", "tags": [], "words": 5})
    world.settle()
    assert _tags(world) == {"a": 1, "b": 2, "c": 1, "7": 2}

    writes = world.client.updates
    world.put(POST, {"id": "1", "tags": ["b", "c"], "words": 10})
    world.settle()
    assert _tags(world) == {"a": 0, "b": 2, "c": 2, "7": 1}
    # "b" has not changed: three groups have.
    assert world.client.updates == writes + 3

    world.delete(POST, {"id": "1"})
    world.settle()
    assert _tags(world) == {"a": 0, "b": 1, "c": 1, "7": 1}


def test_a_list_a_map_and_a_histogram_can_be_looked_at_by_others() -> None:
    cities = Aggregate(
        "cities",
        POST,
        pk="CITY#{place.city}",
        sk="TAG#{tags[]}",
        measures={"n": Count(), "words": Histogram("words", at_least=[Decimal("0.5"), 10]), "mean": Average("words")},
    )
    over = Aggregate(
        "over",
        cities,
        pk="OVER#{place.city}",
        sk="ALL",
        measures={"tags": Count(), "long": Sum("words.10"), "words": Sum("mean.sum"), "some": Sum("words.0.5")},
        where=Attr("tags[]").ne("c") & Attr("mean.count").ge(1),
    )
    authors = Distinct("authors", POST, pk="TAG#{tags[]}", sk="AUTHORS", member="author.name")
    world = World([cities, over, authors])
    for number, (city, tags, words) in enumerate(
        [("Oslo", ["a", "b"], 12), ("Oslo", ["b", "c"], 3), ("Rome", ["a"], 0)]
    ):
        values = {"id": str(number), "place": {"city": city}, "tags": tags, "words": words}
        world.put(POST, {**values, "author": {"name": city}})
    world.settle()

    assert world.measures(over, **{"place.city": "Oslo"}) == {"tags": 2, "long": 2, "words": 27, "some": 3}
    assert world.measures(over, **{"place.city": "Rome"}) == {"tags": 1, "long": 0, "words": 0, "some": 0}
    assert world.counters.distinct(authors, {"tags[]": "a"}) == 2


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


def test_an_average_is_divided_when_read() -> None:
    world = World([TOTAL])
    assert world.measures(TOTAL)["mean"] is None
    for place, number in enumerate([1, 0, Decimal("0.0"), 1]):
        world.put(POST, {"id": str(place), "x": number})
    world.settle()
    assert world.measures(TOTAL)["mean"] == Decimal("0.5")

    world.put(POST, {"id": "0", "x": 2})
    world.delete(POST, {"id": "3"})
    world.settle()
    assert world.measures(TOTAL)["mean"] == Decimal("0." + "6" * 37 + "7")


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
