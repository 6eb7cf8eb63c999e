"""Players of a game who report paths: the same ones, the same ones again, and more than count."""

from __future__ import annotations

import random
from typing import Final

from demo.events import Course, Submission
from demo.traffic import with_duplicates

_PLAYERS: Final = 45
_PATHS: Final = 15
_CORRECTED: Final = 3
_CORRECTIONS: Final = 5


def submissions(rng: random.Random, duplicates: float) -> Course[Submission]:
    """Make up a game.

    There are players for each number of paths, so that those who found more than count are among them. Of the first
    players all paths are taken back, which one of them reports once more; of the last, who found most, some.

    Parameters
    ----------
    rng : random.Random
        Source of chance: the same state gives the same game.
    duplicates : float
        Share of paths reported again, 0 to 1.

    Returns
    -------
    Course of Submission
        What players do.
    """
    paths = [f"path-{number:02}" for number in range(1, _PATHS + 1)]
    # By number of paths found; several players have each number.
    players = [
        [Submission(f"player-{number + 1:02}", path) for path in rng.sample(paths, 1 + number * _PATHS // _PLAYERS)]
        for number in range(_PLAYERS)
    ]
    reported = [submission for player in players for submission in player]
    rng.shuffle(reported)
    disqualified = [players[number * _CORRECTIONS] for number in range(_CORRECTED)]
    corrected = [rng.sample(player, _CORRECTIONS) for player in players[-_CORRECTED:]]
    withdrawn = [submission for part in (*disqualified, *corrected) for submission in part]
    return Course(with_duplicates(rng, reported, duplicates), withdrawn, disqualified[-1])
