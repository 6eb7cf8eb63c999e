"""What the made-up game and site hold, whatever the seed."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from demo.aggregates_truth import leaderboard_truth, pages_truth
from demo.events import Course
from demo.game import submissions
from demo.site import created, visited

SEEDS = range(20)


@pytest.mark.parametrize("make", [submissions, created, visited])
@pytest.mark.parametrize("seed", SEEDS)
def test_only_what_was_sent_is_withdrawn_and_only_that_is_sent_again(make: Any, seed: int) -> None:
    course: Course[Any] = make(random.Random(seed), 0.2)

    assert len(course.sent) > len(set(course.sent))
    assert 0 < len(course.withdrawn) == len(set(course.withdrawn))
    assert set(course.again) <= set(course.withdrawn) <= set(course.sent)
    assert len(course.again) == len(set(course.again))
    assert course == make(random.Random(seed), 0.2)


@pytest.mark.parametrize("seed", SEEDS)
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


@pytest.mark.parametrize("seed", SEEDS)
def test_users_view_pages_again_and_are_forgotten(seed: int) -> None:
    visits = visited(random.Random(seed), 0.0)
    truth = pages_truth(created(random.Random(seed), 0.0), visits)

    assert len(visits.sent) > len(set(visits.sent))
    assert truth.visitors < len({user for _, user in visits.sent})
    assert truth.pages < len(truth.views) + 2
    assert visits.again
    assert len(visits.sent) < 600
