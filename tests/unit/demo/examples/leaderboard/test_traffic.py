"""What generated games contain, whatever the seed."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from demo.examples.leaderboard.traffic import submissions
from demo.examples.leaderboard.truth import leaderboard_truth


@pytest.mark.parametrize("seed", range(20))
def test_players_find_the_same_paths_too_many_and_lose_them(seed: int) -> None:
    game = submissions(random.Random(seed), 0.0)
    truth = leaderboard_truth(game)
    found = Counter(player for player, _ in game.sent)

    assert max(Counter(path for _, path in set(game.sent)).values()) > 10
    assert min(truth.by_paths.values()) > 0
    assert max(truth.players.values()) > 12
    assert 0 < truth.active < len(truth.players)
    assert any(paths > 12 >= truth.players[player] > 0 for player, paths in found.items())
    assert len(game.sent) < 600
