"""The leaderboard example: players report paths, and everything that is ranked and totalled is read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from demo.aggregates_truth import LeaderboardTruth, leaderboard_truth
from demo.comparison import highest
from demo.events import Course, Submission
from demo.example import Example, Sent
from demo.findings import Numbers
from demo.readback import read_groups
from examples.leaderboard_declarations import LEADERBOARD, PATH, PLAYERS

_TOP: Final = 10
_SHOWN: Final = 2


@dataclass(frozen=True)
class Leaderboard(Example):
    """The leaderboard example.

    Parameters
    ----------
    counters : Counters
        The runtime, bound to the example's table.
    game : Course of Submission
        What players do.
    """

    name: ClassVar[str] = "leaderboard"

    game: Course[Submission]

    def totals(self) -> dict[str, int]:
        """Read what tells whether everything has been counted."""
        return {"paths": int(self.counters.get(LEADERBOARD, {}).measures["total_paths"])}

    def expected_totals(self) -> dict[str, int]:
        """Work out what the totals must come to."""
        return {"paths": self._truth.total}

    @property
    def _truth(self) -> LeaderboardTruth:
        return leaderboard_truth(self.game)

    def _sent(self) -> Sequence[Sent]:
        return [(PATH, self.game, "paths")]

    def _read(self) -> Numbers:
        # One Query answers all that the page shows but the ranking.
        groups = self.counters.group([LEADERBOARD], {})["leaderboard"]
        measures = groups[0].measures if groups else self.counters.get(LEADERBOARD, {}).measures
        ranked = self.counters.top(PLAYERS, count=_TOP)
        return {
            "totals": {name: int(measures[name]) for name in ("active_players", "total_paths")},
            "players_by_paths": {str(paths): int(n) for paths, n in measures["players_by_paths"].items()},
            "histogram": {
                str(paths): int(n) for paths, n in self.counters.histogram(LEADERBOARD, {}, "players_by_paths").items()
            },
            "players": read_groups(self.counters, PLAYERS, "player", self._truth.players),
            "top_scores": {str(place): int(entry.score) for place, entry in enumerate(ranked, start=1)},
            "top_players": {entry.values["player"]: int(entry.score) for entry in ranked},
        }

    def _expected(self, found: Numbers) -> Numbers:
        truth = self._truth
        return {
            "totals": {"active_players": truth.active, "total_paths": truth.total},
            "players_by_paths": truth.by_paths,
            "histogram": truth.by_paths,
            "players": truth.players,
            "top_scores": {str(place): score for place, score in enumerate(truth.best(_TOP), start=1)},
            # Who of those with equal scores is named is open, but not what they have.
            "top_players": {player: truth.players.get(player, 0) for player in found["top_players"]},
        }

    def _lines(self, found: Numbers) -> Sequence[str]:
        totals, bins, top = found["totals"], found["players_by_paths"], found["top_players"]
        named = ", ".join(f"{player}: {top[player]:,}" for player in highest(top, _SHOWN))
        of_all = f"{totals['total_paths']:,} paths of {totals['active_players']:,} players, 12 of each at most"
        return [
            f"leaderboard            {of_all}; first: {named}",
            f"players by paths       {', '.join(f'{paths}: {n:,}' for paths, n in bins.items())}",
        ]
