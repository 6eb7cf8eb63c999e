"""Aggregates over events and foreign items: lists, nested attributes, exact numbers, spread, no needless write."""

from __future__ import annotations

from decimal import Decimal

from dynamodb_counters import Aggregate, Count, Event, Histogram, Ranking, Sum
from tests.unit.fold.world import World

POST = Event("post", pk="POST#{id}", sk="POST")


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
