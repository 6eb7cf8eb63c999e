from __future__ import annotations

import random
from collections import Counter

import pytest

from demo.examples.leaderboard.traffic import Submission, submissions
from demo.examples.leaderboard.truth import LeaderboardTruth
from demo.sending.deliveries import Deliveries


@pytest.mark.parametrize("seed", range(20))
def test_players_find_the_same_paths_too_many_and_lose_them(seed: int) -> None:
    game = submissions(random.Random(seed), 0.0)
    truth = LeaderboardTruth(game)
    found = Counter(player for player, _ in game.sent)

    assert max(Counter(path for _, path in set(game.sent)).values()) > 10
    assert min(truth.by_paths.values()) > 0
    assert max(truth.players.values()) > 12
    assert 0 < truth.active < len(truth.players)
    assert any(paths > 12 >= truth.players[player] > 0 for player, paths in found.items())
    assert len(game.sent) < 600


def _found(player: str, count: int) -> list[Submission]:
    return [Submission(player, f"p{number}") for number in range(count)]


def test_twelve_paths_of_a_player_count() -> None:
    truth = LeaderboardTruth(Deliveries([*_found("ann", 14), *_found("bob", 12), *_found("cyd", 1), *_found("bob", 3)]))

    assert truth.players == {"ann": 14, "bob": 12, "cyd": 1}
    assert truth.total == 25
    assert truth.by_paths == {str(paths): {1: 1, 12: 2}.get(paths, 0) for paths in range(1, 13)}
    assert truth.best(2) == [14, 12]


def test_a_player_without_paths_is_no_longer_active() -> None:
    truth = LeaderboardTruth(Deliveries([*_found("ann", 2), *_found("bob", 1)], _found("ann", 2)))

    assert truth.players == {"ann": 0, "bob": 1}
    assert (truth.active, truth.total, truth.best(10)) == (1, 1, [1])
