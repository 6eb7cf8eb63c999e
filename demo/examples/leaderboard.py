"""45 players who find up to 15 paths each, of which 12 count; some are retracted, and some of these found again."""

from __future__ import annotations

from collections import Counter

from demo.example import Example
from demo.options import Setup
from demo.sending import Deliveries, with_duplicates


def play(setup: Setup) -> Example:
    rng, paths = setup.rng("game"), [f"path-{number:02}" for number in range(1, 16)]
    players = [
        [{"player": f"player-{number:02}", "path": path} for path in rng.sample(paths, 1 + (number - 1) // 3)]
        for number in range(1, 46)
    ]
    events = [item for player in players for item in player]
    rng.shuffle(events)
    # All paths of three players with few, some of the three with most.
    disqualified = [players[0], players[5], players[10]]
    retracted = [item for part in (*disqualified, *(rng.sample(player, 5) for player in players[-3:])) for item in part]
    game = Deliveries(with_duplicates(rng, events, setup.options.duplicates), retracted, disqualified[-1])
    remains = Counter(item["player"] for item in game.remaining())
    scores = {item["player"]: remains[item["player"]] for item in events}
    counted = [min(score, 12) for score in scores.values()]
    truth = {
        "players.paths": scores,
        "players.top": dict(zip(map(str, range(1, 11)), sorted(scores.values(), reverse=True), strict=False)),
        # A player without any path left is in no group.
        "leaderboard.players_by_paths": {"<1": 0} | {str(paths): counted.count(paths) for paths in range(1, 13)},
        "leaderboard.active_players": {"": sum(map(bool, counted))},
        "leaderboard.total_paths": {"": sum(counted)},
    }
    return Example(name="leaderboard", now=setup.now, events={"path": game}, truth=truth)
