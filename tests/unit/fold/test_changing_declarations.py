"""Promises of docs/changing-declarations.md for a live table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Histogram, Ranking, Sum
from dynamodb_counters._declarations import Declarable
from tests.unit.fold.world import World

GAME = Event("game", pk="GAME#{id}", sk="GAME")
PLAYERS = Aggregate(
    "players",
    GAME,
    pk="PLAYER#{player}",
    sk="STATISTICS",
    measures={"games": Count()},
    ranking=Ranking(measure="games", leaderboard="PLAYERS"),
)
TOTAL = Aggregate("total", GAME, pk="TOTAL", sk="GAMES", measures={"games": Count(), "points": Sum("points")})
OFTEN = Aggregate(
    "often",
    PLAYERS,
    pk="OFTEN",
    sk="STATISTICS",
    measures={"n": Count(), "players": Histogram("games", exactly=[1, 2, 3])},
)


def _play(world: World, *players: str, first: int = 0) -> None:
    for number, player in enumerate(players, first):
        world.put(GAME, {"id": str(number), "player": player, "points": number})
    world.settle()


def _deployed(*before: Declarable) -> World:
    world = World(before, shards=3)
    _play(world, "ann", "ann", "bob")
    return world


def _redeployed(before: list[Declarable], after: list[Declarable], *players: str) -> World:
    """A table whose declarations changed before these players played."""
    world = _deployed(*before)
    world.declare(after)
    _play(world, *players, first=10)
    return world


def _items(world: World, *names: str) -> list[dict[str, Any]]:
    return [dict(item) for item in world.client.items() if item.get("_type", {}).get("S") in names]


@pytest.mark.parametrize(
    "after",
    [
        [PLAYERS, OFTEN, TOTAL],
        [PLAYERS, OFTEN],
        [OFTEN, PLAYERS, replace(TOTAL, pk="ELSEWHERE")],
        [PLAYERS, OFTEN, replace(TOTAL, name="sum")],
        [PLAYERS, OFTEN, replace(TOTAL, measures={"games": Count()})],
    ],
    ids=["nothing", "removed", "moved", "renamed", "measured otherwise"],
)
def test_items_of_what_did_not_change_never_move(after: list[Declarable]) -> None:
    world = _deployed(PLAYERS, OFTEN, TOTAL)
    before = _items(world, "players", "often")
    assert len(before) == 3

    world.declare(after)
    world.settle()
    assert _items(world, "players", "often") == before

    _play(world, "ann", first=10)
    assert world.measures(PLAYERS, player="ann") == {"games": 3}
    assert world.measures(OFTEN) == {"n": 2, "players": {1: 1, 2: 0, 3: 1}}


def test_a_removed_aggregate_stays_as_it_was_and_goes_on_when_declared_again() -> None:
    world = _redeployed([PLAYERS, TOTAL], [PLAYERS], "ann")
    assert world.measures(TOTAL)["games"] == 3

    world.declare([PLAYERS, TOTAL])
    _play(world, "ann", first=20)
    assert world.measures(TOTAL)["games"] == 4


def test_a_renamed_board_takes_over_a_group_and_its_score_when_it_changes() -> None:
    renamed = replace(PLAYERS, ranking=Ranking(measure="games", leaderboard="SEASON"))
    world = _redeployed([PLAYERS], [renamed], "ann")

    boards = {item["pk"]["S"]: (item["_board"]["S"], item["_score"]["N"]) for item in _items(world, "players")}
    assert boards == {"PLAYER#ann": ("SEASON#~0", "3"), "PLAYER#bob": ("PLAYERS#~0", "1")}


def test_a_ranking_added_later_begins_with_the_next_change() -> None:
    world = _redeployed([replace(PLAYERS, ranking=None)], [PLAYERS], "ann")

    [ann] = [item for item in _items(world, "players") if item["pk"]["S"] == "PLAYER#ann"]
    assert (ann["games"]["N"], ann["_score"]["N"]) == ("3", "1")
