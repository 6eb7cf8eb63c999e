"""Aggregates over aggregates: histograms, caps, distinct members, each right after every change."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import (
    Aggregate,
    Average,
    Count,
    Event,
    Histogram,
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


def _path(player: str, path: int) -> dict[str, Any]:
    return {"player": player, "path": str(path)}


def _found(*paths: int, player: str = "ann") -> World:
    """A world in which a player has found paths."""
    world = World([PLAYERS, BOARD])
    for path in paths:
        world.put(PATH, _path(player, path))
    world.settle()
    return world


@pytest.mark.parametrize("player", ["ann", "a key that is hashed" + "#" * 3000])
def test_a_reset_counts_in_what_looks_at_it(player: str) -> None:
    world = _found(0, 1, 2, player=player)

    assert world.counters.reset(PLAYERS, {"player": player}) == {"paths": 3}
    world.settle()
    assert world.measures(BOARD)["players"] == 0

    world.put(PATH, _path(player, 3))
    world.settle()
    assert world.measures(BOARD)["exactly"] == {1: 1, 2: 0, 3: 0, 4: 0, 5: 0}
