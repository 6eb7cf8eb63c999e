"""Aggregates over aggregates: histograms, caps, distinct members, hierarchies, each right after every change."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import (
    Aggregate,
    Average,
    Count,
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


def _found(*paths: int, player: str = "ann") -> World:
    """A world in which a player has found paths."""
    world = World([PLAYERS, BOARD])
    for path in paths:
        world.put(PATH, _path(player, path))
    world.settle()
    return world


@pytest.mark.parametrize("player", ["a#b", LONG])
def test_a_player_of_five_paths_in_one_batch_and_three_after_deletions(player: str) -> None:
    world = _found(*range(5), player=player)

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
    world.settle()

    assert world.measures(BOARD) == {
        "players": 1,
        "capped": 3,
        "exactly": {1: 0, 2: 0, 3: 1, 4: 0, 5: 0},
        "at_least": {1: 1, 3: 1, 5: 0},
        "bounds": {0: 0, 2: 1, 4: 0},
        "mean": 3,
    }


def test_a_reset_counts_in_what_looks_at_it() -> None:
    world = _found(0, 1, 2)

    assert world.counters.reset(PLAYERS, {"player": "ann"}) == {"paths": 3}
    world.settle()
    assert world.measures(BOARD)["players"] == 0

    world.put(PATH, _path("ann", 3))
    world.settle()
    assert world.measures(BOARD)["exactly"] == {1: 1, 2: 0, 3: 0, 4: 0, 5: 0}


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


def test_an_aggregate_over_a_spread_one_is_refused() -> None:
    spread = Aggregate("spread", PATH, pk="SPREAD", sk="ALL", measures={"n": Count()}, write_shards=4)

    with pytest.raises(
        InvalidArgumentError, match="invalid source='spread': expected an aggregate with write_shards=1"
    ):
        Aggregate("over", spread, pk="OVER", sk="ALL", measures={"n": Count()})
