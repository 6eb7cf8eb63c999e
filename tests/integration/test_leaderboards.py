"""Leaderboards are read from the index that the construct provisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamodb_counters import Count, Counter, Counters, Ranking
from dynamodb_counters._items.schema import LEADERBOARD, RANKING_INDEX, SCORE
from simulation.engines import Engine

LONG = "ü#" * 1500


@pytest.fixture(params=[1, 3], ids=["one partition", "write shards"])
def scores(request: pytest.FixtureRequest) -> Counter:
    ranking = Ranking(measure="points", leaderboard="BOARD#{country}", write_shards=request.param)
    return Counter("scores", by=("player", "country"), games=Count(), points=Count(), ranking=ranking)


@pytest.fixture
def counters(engine: Engine) -> Iterator[Counters]:
    """Create a table with the ranking index the construct provisions."""
    types, kinds = {"pk": "S", "sk": "S", LEADERBOARD: "S", SCORE: "N"}, ("HASH", "RANGE") * 2
    keys = [{"AttributeName": name, "KeyType": kind} for name, kind in zip(types, kinds, strict=True)]
    schema: Any = {"TableName": "ranked", "BillingMode": "PAY_PER_REQUEST", "KeySchema": keys[:2]}
    schema["AttributeDefinitions"] = [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]
    index: Any = {"IndexName": RANKING_INDEX, "KeySchema": keys[2:], "Projection": {"ProjectionType": "KEYS_ONLY"}}
    engine.client.create_table(**schema, GlobalSecondaryIndexes=[index])
    engine.client.get_waiter("table_exists").wait(TableName="ranked", WaiterConfig={"Delay": 1, "MaxAttempts": 30})
    yield Counters("ranked", client=engine.client)
    engine.client.delete_table(TableName="ranked")


def _top(counters: Counters, scores: Counter, count: int, country: str = "no") -> list[tuple[str, object]]:
    groups = counters.top(scores, {"country": country}, count=count)
    return [(ranked.values["player"], ranked["points"]) for ranked in groups]


def test_the_first_of_each_leaderboard(counters: Counters, scores: Counter) -> None:
    def add(player: str, points: int, country: str = "no") -> None:
        counters.increment(scores, {"player": player, "country": country}, amount={"games": 1, "points": points})

    for player, points in (("ann", 5), ("bob", -3), (LONG, 7), ("dan", 0), ("bob", 2)):
        add(player, points)
    add("eve", 100, "se")
    assert _top(counters, scores, 3) == [(LONG, 7), ("ann", 5), ("dan", 0)]
    assert _top(counters, scores, 10) == [(LONG, 7), ("ann", 5), ("dan", 0), ("bob", -1)]
    assert _top(counters, scores, 10, "se") == [("eve", 100)]
    assert _top(counters, scores, 10, "dk") == []
    counters.reset(scores, {"player": LONG, "country": "no"})
    add(LONG, 4)
    assert _top(counters, scores, 2) == [("ann", 5), (LONG, 4)]
