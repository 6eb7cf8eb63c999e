"""The example declarations answer their designs' questions, over plain items and through the stream alike."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from dynamodb_counters import evaluate
from examples.leaderboard.declarations import LEADERBOARD, MOST_PATHS, PATH, PLAYERS
from examples.pages.declarations import PAGE, PAGES, TOTAL, VIEW, VIEWS, VISITORS
from tests.unit.fold.world import World


def _submissions() -> list[dict[str, Any]]:
    """Play the game: few players, overlapping and repeated paths, some players with more than twelve."""
    chance = random.Random(12)
    players = [(f"player{number}", number) for number in range(1, 18)]
    paths = [{"player": name, "path": str(path)} for name, number in players for path in range(number)]
    repeated = chance.choices(paths, k=50)
    return chance.sample([*paths, *repeated], len(paths) + len(repeated))


def _leaderboard(submissions: list[dict[str, Any]]) -> dict[str, Any]:
    """Compute the page with no declaration at all."""
    per_player = Counter(player for player, _ in {(one["player"], one["path"]) for one in submissions})
    counted = [min(number, MOST_PATHS) for number in per_player.values()]
    return {
        "active_players": len(per_player),
        "total_paths": sum(counted),
        "players_by_paths": {number: counted.count(number) for number in range(1, MOST_PATHS + 1)},
    }


def test_the_leaderboard_over_plain_items() -> None:
    submissions = _submissions()

    found = evaluate([PLAYERS, LEADERBOARD], [(PATH, values) for values in submissions])

    [page] = found["leaderboard"]
    assert page.measures == _leaderboard(submissions)
    assert page.measures["total_paths"] < sum(int(group.measures["paths"]) for group in found["players"])


def test_the_leaderboard_through_the_stream_is_one_read() -> None:
    submissions, chance = _submissions(), random.Random(3)
    world = World([PLAYERS, LEADERBOARD], shards=3)
    for values in submissions:
        world.counters.accept(PATH, values)
        world.deliver(chance, faults=True)
    world.settle()

    assert world.measures(LEADERBOARD) == _leaderboard(submissions)
    assert world.measures(PLAYERS, player="player17") == {"paths": 17}


def test_a_path_taken_back_leaves_the_leaderboard_right() -> None:
    submissions = _submissions()
    world = World([PLAYERS, LEADERBOARD])
    for values in submissions:
        world.counters.accept(PATH, values)
    world.settle()
    cheater = [values for values in submissions if values["player"] == "player13"]
    for values in cheater[:3]:
        world.counters.retract(PATH, values)
    world.settle()

    left = [values for values in submissions if values not in cheater[:3]]
    assert world.measures(LEADERBOARD) == _leaderboard(left)


def _traffic() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    # As in the design: one page is viewed by every second user, the other by every third; some come again.
    pages = [{"page": name, "title": name} for name in ("one", "two", "never seen")]
    views = [{"page": "one", "user": str(user)} for user in range(0, 100, 2)]
    views += [{"page": "two", "user": str(user)} for user in range(0, 100, 3)]
    return pages, [*views, *views[::5]]


def test_pages_over_plain_items() -> None:
    pages, views = _traffic()

    found = evaluate(
        [VIEWS, PAGES, TOTAL, VISITORS], [*((PAGE, page) for page in pages), *((VIEW, view) for view in views)]
    )

    assert {group.values["page"]: group.measures["views"] for group in found["views"]} == {"one": 50, "two": 34}
    assert found["pages"][0].measures == {"pages": 3}
    assert found["total"][0].measures == {"views": 84}
    assert found["visitors"][0].measures == {"distinct": 67}


def test_pages_through_the_stream() -> None:
    pages, views = _traffic()
    world = World([VIEWS, PAGES, TOTAL, VISITORS], shards=4)
    world.counters.accept_many(PAGE, pages)
    world.counters.accept_many(VIEW, views)
    world.settle(7)

    assert world.measures(VIEWS, page="one") == {"views": 50}
    assert world.measures(VIEWS, page="never seen") == {"views": 0}
    assert world.measures(PAGES) == {"pages": 3}
    assert world.measures(TOTAL) == {"views": 84}
    assert world.counters.distinct(VISITORS, {}) == len({view["user"] for view in views}) == 67


def test_the_example_stacks_hold_what_is_declared() -> None:
    from examples.leaderboard.stack import LeaderboardStack  # noqa: PLC0415
    from examples.pages.stack import PagesStack  # noqa: PLC0415
    from tests.unit.infra.support import declared, new_app, synthesized  # noqa: PLC0415

    app = new_app()
    leaderboard, pages = LeaderboardStack(app, "Leaderboard"), PagesStack(app, "Pages")

    assert declared(synthesized(leaderboard)) == ["leaderboard", "players"]
    assert declared(synthesized(pages)) == ["pages", "total", "views", "visitors", "visitors-members"]
