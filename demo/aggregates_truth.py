"""What aggregates over aggregates must come to, worked out from the events alone.

Shares no code with the runtime it is held against, and must stay that way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from demo.events import Course, Page, Submission, Visit

_COUNTED_PATHS: Final = 12

_Event = TypeVar("_Event", bound=Hashable)


@dataclass(frozen=True)
class LeaderboardTruth:
    """The leaderboard.

    Parameters
    ----------
    players : mapping of str to int
        All paths of every player, also of one who has none left.
    """

    players: Mapping[str, int]

    @property
    def active(self) -> int:
        """Players with a path."""
        return sum(1 for paths in self.players.values() if paths)

    @property
    def total(self) -> int:
        """Paths of all players, twelve of each at most."""
        return sum(min(paths, _COUNTED_PATHS) for paths in self.players.values())

    @property
    def by_paths(self) -> dict[str, int]:
        """Players by their number of paths; those with more than twelve have twelve."""
        counted = Counter(min(paths, _COUNTED_PATHS) for paths in self.players.values())
        return {str(paths): counted[paths] for paths in range(1, _COUNTED_PATHS + 1)}

    def best(self, count: int) -> list[int]:
        """Give the highest numbers of paths: whose they are is not certain, as several may have the same.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        list of int
            Highest first.
        """
        return sorted(filter(None, self.players.values()), reverse=True)[:count]


@dataclass(frozen=True)
class PagesTruth:
    """The pages' counts.

    Parameters
    ----------
    pages : int
        Pages there are.
    views : mapping of str to int
        Users who have viewed a page, by page ever viewed.
    visitors : int
        Users who have viewed any.
    """

    pages: int
    views: Mapping[str, int]
    visitors: int


def remaining(course: Course[_Event]) -> frozenset[_Event]:
    """Tell which events are there in the end.

    Parameters
    ----------
    course : Course
        What happened.

    Returns
    -------
    frozenset
        Each once.
    """
    return (frozenset(course.sent) - frozenset(course.withdrawn)) | frozenset(course.again)


def answers(*courses: Course[Any]) -> dict[str, int]:
    """Work out what the runtime must answer.

    Parameters
    ----------
    *courses : Course
        What happens to events of each kind.

    Returns
    -------
    dict of str to int
        How many times ``accepted``, ``duplicate`` and ``withdrawn``.
    """
    distinct = sum(len(set(course.sent)) for course in courses)
    return {
        "accepted": distinct + sum(len(course.again) for course in courses),
        "duplicate": sum(len(course.sent) for course in courses) - distinct,
        "withdrawn": sum(len(course.withdrawn) for course in courses),
    }


def leaderboard_truth(game: Course[Submission]) -> LeaderboardTruth:
    """Count the paths that players are left with.

    Parameters
    ----------
    game : Course of Submission
        What players did.

    Returns
    -------
    LeaderboardTruth
        What the system must answer.
    """
    paths = Counter(submission.player for submission in remaining(game))
    return LeaderboardTruth({player: paths[player] for player in sorted({player for player, _ in game.sent})})


def pages_truth(pages: Course[Page], visits: Course[Visit]) -> PagesTruth:
    """Count the pages there are and the views left.

    Parameters
    ----------
    pages : Course of Page
        What happened to pages.
    visits : Course of Visit
        What users did.

    Returns
    -------
    PagesTruth
        What the system must answer.
    """
    left = remaining(visits)
    views = Counter(visit.page for visit in left)
    return PagesTruth(
        len(remaining(pages)),
        {page: views[page] for page in sorted({page for page, _ in visits.sent})},
        len({visit.user for visit in left}),
    )
