"""A game's leaderboard: players submit the paths they found, of which at most twelve of each player count."""

from __future__ import annotations

from typing import Final

from dynamodb_counters import Aggregate, Count, Event, Histogram, Ranking, Sum

MOST_PATHS: Final = 12

PATH: Final = Event("path", key=("player", "path"), attributes={"player": str, "path": str})
"""A player found a path. The same path by the same player again is the same event."""

PLAYERS: Final = Aggregate("players", PATH, by="player", paths=Count(), ranking=Ranking("paths", "PLAYERS"))
"""All paths of each player, stored next to the paths themselves; ranks the top players."""

LEADERBOARD: Final = Aggregate(
    "leaderboard",
    PLAYERS,
    active_players=Count(),
    total_paths=Sum("paths", cap=MOST_PATHS),
    players_by_paths=Histogram("paths", bounds=range(1, MOST_PATHS + 1)),
)
"""The whole page in one item, so one read. The last bin is open: players with more than twelve paths are in it."""
