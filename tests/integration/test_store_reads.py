"""Reads give what was counted: groups, windows over exactly the interval they state, and leaderboards."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import (
    Aggregate,
    Count,
    Counter,
    Counters,
    Event,
    InvalidArgumentError,
    Ranking,
    Sum,
    Window,
    WindowCount,
)
from dynamodb_counters._items.table_schema import LEADERBOARD, RANKING_INDEX, SCORE
from simulation.engines import Engine
from tests.integration.stores import Store
from tests.unit.fold.streams import NOW, Record, image, record

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count(), "bytes": Sum("bytes")})
_SITE = Aggregate("site", _VIEW, pk="SITE", sk="SITE", measures={"n": Count()})
_KEPT = Window("kept", _VIEW, pk="URL#{url}", time="at")
LONG = "ü#" * 1500


def _views(times: list[int], url: str = "/", first: int = 1) -> list[Record]:
    """Make an event a time, all created now; they have 1, 2, 3, … bytes."""
    return [record(first + n, image("view", url=url, at=at, bytes=n + 1)) for n, at in enumerate(times)]


def _window(store: Store, window: Window, url: str = "/", *, last: timedelta, **asked: Any) -> WindowCount:
    return store.counters.window(window, url=url).last(last, **asked, consistent=True)


def test_more_groups_than_a_call_takes_come_in_the_order_asked(store: Store) -> None:
    counted = [record(n, image("view", url=str(n), bytes=n, at=NOW)) for n in range(1, 111)]
    store.deliver(counted, _VIEWS, _SITE)
    urls = [str(n) for n in range(1, 121)]
    random.Random(7).shuffle(urls)
    asked: list[tuple[Aggregate, dict[str, object]]] = [(_VIEWS, {"url": url}) for url in [*urls, *urls[:5]]]

    groups = store.counters.get_many([*asked, (_SITE, {})], consistent=True)

    assert [group.values.get("url") for group in groups] == [*urls, *urls[:5], None]
    assert [group.measures["n"] for group in groups[:-1]] == [int(int(url) <= 110) for url in [*urls, *urls[:5]]]
    assert groups[-1].measures == {"n": 110}


def test_fractions_are_exact(store: Store) -> None:
    parts = enumerate(("0.1", "0.2", "1E-20"), start=1)
    store.deliver([record(n, image("view", url="/", bytes=Decimal(part))) for n, part in parts], _VIEWS)

    found = store.counters.get(_VIEWS, {"url": "/"}, consistent=True)
    assert found.measures["bytes"] == Decimal("0.30000000000000000001")


def test_a_window_is_read_by_one_query(store: Store) -> None:
    store.deliver(_views([NOW - 3600 * hour for hour in range(30, -1, -1)]), _KEPT)
    # A process asks once a minute which items hold the counts.
    store.counters.window(_KEPT, url="/").last(timedelta(hours=24))
    before = len(store.client.calls)
    queries = store.answers_of_queries()

    assert store.counters.window(_KEPT, url="/").last(timedelta(hours=24)).count >= 24
    assert len(queries) == 1
    assert len(store.client.calls) == before


def test_a_window_longer_than_a_page_is_read_whole(store: Store, engine: Engine) -> None:
    if engine.name == "ministack":
        pytest.skip("ministack answers every Query in one page")
    hours = range(6)
    store.deliver(_views([NOW - 3600 * hour for hour in reversed(hours)]), _KEPT)
    # Another writer's attribute makes the buckets so large that a page of 1 MB holds but a few.
    for item in store.items():
        store.client.put_item(TableName=store.name, Item={**item, "note": {"S": "x" * 350_000}})
    queries = store.answers_of_queries()

    assert _window(store, _KEPT, last=timedelta(hours=7)).count == len(hours)
    assert len(queries) > 1


@pytest.fixture(params=[1, 3], ids=["one partition", "write shards"])
def scores(request: pytest.FixtureRequest) -> Counter:
    return Counter(
        "scores",
        by=("player", "country"),
        games=Count(),
        points=Count(),
        ranking=Ranking(measure="points", leaderboard="BOARD#{country}", write_shards=request.param),
    )


@pytest.fixture
def counters(engine: Engine) -> Iterator[Counters]:
    """Create a table with the ranking index the construct provisions."""
    text, number = {"AttributeName": "", "AttributeType": "S"}, {"AttributeName": SCORE, "AttributeType": "N"}
    engine.client.create_table(
        TableName="ranked",
        AttributeDefinitions=[*({**text, "AttributeName": name} for name in ("pk", "sk", LEADERBOARD)), number],  # type: ignore[list-item]
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": RANKING_INDEX,
                "KeySchema": [
                    {"AttributeName": LEADERBOARD, "KeyType": "HASH"},
                    {"AttributeName": SCORE, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    engine.client.get_waiter("table_exists").wait(TableName="ranked", WaiterConfig={"Delay": 1, "MaxAttempts": 30})
    yield Counters("ranked", client=engine.client)
    engine.client.delete_table(TableName="ranked")


def _add(counters: Counters, scores: Counter, player: str, points: int, country: str = "no") -> None:
    counters.increment(scores, {"player": player, "country": country}, amount={"games": 1, "points": points})


def _top(counters: Counters, scores: Counter, count: int, country: str = "no") -> list[tuple[str, object]]:
    found = counters.top(scores, {"country": country}, count=count)
    return [(ranked.values["player"], ranked["points"]) for ranked in found]


def test_the_first_of_each_leaderboard(counters: Counters, scores: Counter) -> None:
    for player, points in (("ann", 5), ("bob", -3), (LONG, 7), ("dan", 0)):
        _add(counters, scores, player, points)
    _add(counters, scores, "eve", 100, "se")
    _add(counters, scores, "bob", 2)

    assert _top(counters, scores, 3) == [(LONG, 7), ("ann", 5), ("dan", 0)]
    assert _top(counters, scores, 10) == [(LONG, 7), ("ann", 5), ("dan", 0), ("bob", -1)]
    assert _top(counters, scores, 10, "se") == [("eve", 100)]
    assert _top(counters, scores, 10, "dk") == []


def test_a_reset_member_starts_again_from_0(counters: Counters, scores: Counter) -> None:
    _add(counters, scores, "ann", 5)
    _add(counters, scores, "bob", 3)

    counters.reset(scores, {"player": "ann", "country": "no"})
    assert _top(counters, scores, 2) == [("bob", 3), ("ann", 0)]

    _add(counters, scores, "ann", 4)
    assert _top(counters, scores, 2) == [("ann", 4), ("bob", 3)]


def test_only_a_ranked_aggregate_has_a_leaderboard(counters: Counters, scores: Counter) -> None:
    plain = Aggregate("plain", Event("game", key="id"), pk="P", sk="P", measures={"n": Count()})
    with pytest.raises(InvalidArgumentError, match="invalid aggregate='plain': expected an aggregate with a ranking"):
        counters.top(plain)
    with pytest.raises(InvalidArgumentError, match="invalid count=0: expected an int from 1 to 1000"):
        counters.top(scores, {"country": "no"}, count=0)
