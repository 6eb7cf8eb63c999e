"""A generated game: players submit the paths they found, some more than once, and some are retracted."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

from demo.sending.deliveries import Deliveries, with_duplicates

_PLAYERS: Final = 45
_PATHS: Final = 15
_CORRECTED: Final = 3
_CORRECTIONS: Final = 5


class Submission(NamedTuple):
    """A player found a path, which others may find too."""

    player: str
    path: str

    def as_event(self) -> dict[str, str]:
        return self._asdict()


def submissions(rng: random.Random, duplicates: float) -> Deliveries[Submission]:
    """Generate a game in which several players have each number of paths, also more than count.

    All paths of three players with few paths are retracted, and one of these players submits them again. Some paths of
    the three players with most paths are retracted.
    """
    paths = [f"path-{number:02}" for number in range(1, _PATHS + 1)]
    players = [
        [Submission(f"player-{number + 1:02}", path) for path in rng.sample(paths, 1 + number * _PATHS // _PLAYERS)]
        for number in range(_PLAYERS)
    ]
    submitted = [submission for player in players for submission in player]
    rng.shuffle(submitted)
    disqualified = [players[number * _CORRECTIONS] for number in range(_CORRECTED)]
    corrected = [rng.sample(player, _CORRECTIONS) for player in players[-_CORRECTED:]]
    retracted = [submission for part in (*disqualified, *corrected) for submission in part]
    return Deliveries(with_duplicates(rng, submitted, duplicates), retracted, disqualified[-1])
