"""Aggregates over aggregates: histograms, caps, distinct members, hierarchies, each right after every change."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import (
    Aggregate,
    Attr,
    Average,
    Count,
    Distinct,
    Event,
    Hierarchy,
    Histogram,
    InvalidArgumentError,
    Sum,
)
from tests.unit.fold.world import World

PATH = Event("path", pk="PLAYER#{player}", sk="PATH#{path}")
PLAYERS = Aggregate("players", PATH, pk="PLAYER#{player}", sk="STATISTICS", measures={"paths": Count()})
BOARD = Aggregate(
    "board",
    PLAYERS,
    pk="BOARD",
    sk="STATISTICS",
    measures={
        "players": Count(),
        "capped": Sum("paths", cap=4),
        "exactly": Histogram("paths", exactly=[1, 2, 3, 4, 5]),
        "at_least": Histogram("paths", at_least=[1, 3, 5]),
        "bounds": Histogram("paths", bounds=[0, 2, 4]),
        "mean": Average("paths"),
    },
)
TRADE = Event("trade", pk="TRADE#{id}", sk="TRADE")
LONG = "#" * 3000


def _path(player: str, path: int) -> dict[str, Any]:
    return {"player": player, "path": str(path)}


def _found(*paths: int, player: str = "ann", batch: int = 100) -> World:
    """A world in which a player has found paths."""
    world = World([PLAYERS, BOARD])
    for path in paths:
        world.put(PATH, _path(player, path))
    world.settle(batch)
    return world


@pytest.mark.parametrize("batch", [1, 2, 100])
@pytest.mark.parametrize("player", ["ann", "", "a#b", LONG])
def test_a_player_of_five_paths_in_one_batch_and_three_after_deletions(player: str, batch: int) -> None:
    world = _found(*range(5), player=player, batch=batch)

    assert world.measures(PLAYERS, player=player) == {"paths": 5}
    assert world.measures(BOARD) == {
        "players": 1,
        "capped": 4,
        "exactly": {1: 0, 2: 0, 3: 0, 4: 0, 5: 1},
        "at_least": {1: 1, 3: 1, 5: 1},
        "bounds": {0: 0, 2: 0, 4: 1},
        "mean": 5,
    }

    for path in (1, 3):
        world.delete(PATH, _path(player, path))
    world.settle(batch)

    assert world.measures(BOARD) == {
        "players": 1,
        "capped": 3,
        "exactly": {1: 0, 2: 0, 3: 1, 4: 0, 5: 0},
        "at_least": {1: 1, 3: 1, 5: 0},
        "bounds": {0: 0, 2: 1, 4: 0},
        "mean": 3,
    }


def test_a_player_without_paths_left_is_as_one_that_never_was() -> None:
    untouched = World([PLAYERS, BOARD]).measures(BOARD)
    world = _found(1)
    world.delete(PATH, _path("ann", 1))
    world.settle()

    assert world.measures(BOARD) == untouched
    assert untouched["mean"] is None


def test_a_reset_counts_in_what_looks_at_it() -> None:
    world = _found(0, 1, 2)

    assert world.counters.reset(PLAYERS, {"player": "ann"}) == {"paths": 3}
    world.settle()
    assert world.measures(BOARD)["players"] == 0

    world.put(PATH, _path("ann", 3))
    world.settle()
    assert world.measures(BOARD)["exactly"] == {1: 1, 2: 0, 3: 0, 4: 0, 5: 0}


def test_distinct_members_come_once_and_go_with_their_last_item() -> None:
    visitors = Distinct("visitors", PATH, pk="PATH#{path}", sk="WHO", member="player")
    world = World([visitors])
    for player in ("ann", "bob", LONG):
        world.put(PATH, _path(player, 1))
    world.put(PATH, {**_path("ann", 1), "corrected": True})
    world.settle()
    assert world.counters.distinct(visitors, {"path": "1"}) == 3

    world.delete(PATH, _path("bob", 1))
    world.settle()
    assert world.counters.distinct(visitors, {"path": "1"}) == 2
    assert world.counters.distinct(visitors, {"path": "2"}) == 0


@pytest.mark.parametrize(("on_expiry", "left"), [("keep", 2), ("subtract", 1)])
def test_distinct_members_expire_as_declared(on_expiry: Any, left: int) -> None:
    session = Event("session", pk="SESSION#{id}", sk="SESSION")
    live = Distinct("live", session, pk="LIVE", sk="WHO", member="user", on_expiry=on_expiry)
    world = World([live])
    for number, user in enumerate(["ann", "ann", "bob"]):
        world.put(session, {"id": str(number), "user": user})
    world.settle()
    assert world.counters.distinct(live, {}) == 2

    world.expire(session, {"id": "2", "user": "bob"})
    world.expire(session, {"id": "0", "user": "ann"})
    world.settle()
    assert world.counters.distinct(live, {}) == left


def test_distinct_follows_a_correction_of_the_member() -> None:
    traders = Distinct("traders", TRADE, pk="DESK#{desk}", sk="TRADERS", member="trader")
    world = World([traders])
    for trader in ("ann", "bob", "ann"):
        world.put(TRADE, {"id": "1", "desk": "fx", "trader": trader})
        world.put(TRADE, {"id": "2", "desk": "fx", "trader": "ann"})
        world.settle()
        assert world.counters.distinct(traders, {"desk": "fx"}) == len({trader, "ann"})


def test_a_hierarchy_is_read_by_one_query() -> None:
    risk = Hierarchy(
        "risk",
        TRADE,
        pk="REGION#{region}",
        levels=("TOTAL", "DESK#{desk}", "DESK#{desk}#{type}"),
        measures={"trades": Count(), "risk": Sum("risk")},
    )
    world = World([risk])
    for number, (region, desk, kind) in enumerate(
        [("emea", "fx", "spot"), ("emea", "fx", "swap"), ("apac", "fx", "x")]
    ):
        risked = Decimal("0.1") * (number + 1)
        world.put(TRADE, {"id": str(number), "region": region, "desk": desk, "type": kind, "risk": risked})
    world.settle()

    found = world.counters.partition(risk.parts, {"region": "emea"})

    assert [(group.values, group.measures) for group in found["risk-0"]] == [
        ({"region": "emea"}, {"trades": 2, "risk": Decimal("0.3")})
    ]
    assert [group.values["desk"] for group in found["risk-1"]] == ["fx"]
    assert {group.values["type"]: group.measures["risk"] for group in found["risk-2"]} == {
        "spot": Decimal("0.1"),
        "swap": Decimal("0.2"),
    }


def test_depth_three_with_a_filter_on_each_level() -> None:
    often = Aggregate(
        "often",
        PLAYERS,
        pk="OFTEN#{player}",
        sk="ONE",
        measures={"n": Count(), "paths": Sum("paths")},
        where=Attr("paths").ge(2) & Attr("player").begins_with("a"),
    )
    total = Aggregate("total", often, pk="TOTAL", sk="TOTAL", measures={"n": Count()}, where=Attr("paths").lt(4))
    world = World([total, PLAYERS, often])
    for player, paths in (("ann", 3), ("amy", 4), ("bob", 3), ("al", 1)):
        for path in range(paths):
            world.put(PATH, _path(player, path))
    world.settle(3)

    assert world.measures(total) == {"n": 1}


def test_an_aggregate_over_a_spread_one_is_refused() -> None:
    spread = Aggregate("spread", PATH, pk="SPREAD", sk="ALL", measures={"n": Count()}, write_shards=4)

    with pytest.raises(
        InvalidArgumentError, match="invalid source='spread': expected an aggregate with write_shards=1"
    ):
        Aggregate("over", spread, pk="OVER", sk="ALL", measures={"n": Count()})
