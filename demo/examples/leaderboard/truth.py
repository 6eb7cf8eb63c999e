"""The leaderboard's counts, computed from the events alone; shares no code with the runtime, and must not."""

from __future__ import annotations

from collections import Counter
from typing import Final

from demo.examples.leaderboard.traffic import Submission
from demo.sending.deliveries import Deliveries

_COUNTED_PATHS: Final = 12


class LeaderboardTruth:
    """The paths that each player is left with, 0 for those whose paths were all retracted."""

    def __init__(self, game: Deliveries[Submission]) -> None:
        paths = Counter(submission.player for submission in game.remaining())
        self.players = {player: paths[player] for player in sorted({player for player, _ in game.sent})}

    @property
    def active(self) -> int:
        return sum(1 for paths in self.players.values() if paths)

    @property
    def total(self) -> int:
        """Paths of all players, at most twelve of each."""
        return sum(min(paths, _COUNTED_PATHS) for paths in self.players.values())

    @property
    def by_paths(self) -> dict[str, int]:
        """Players by their number of paths; those with more than twelve are among those with twelve."""
        counted = Counter(min(paths, _COUNTED_PATHS) for paths in self.players.values())
        # A player whose paths are all withdrawn is in no group.
        return {"<1": 0, **{str(paths): counted[paths] for paths in range(1, _COUNTED_PATHS + 1)}}

    def best(self, count: int) -> list[int]:
        """The highest numbers of paths, without names: several players may have the same."""
        return sorted(filter(None, self.players.values()), reverse=True)[:count]
