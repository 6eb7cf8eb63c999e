"""The leaderboard example: players report paths, and everything that is ranked and totalled is read back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from demo.aggregates_truth import LeaderboardTruth, answers, leaderboard_truth
from demo.drain import read_settled
from demo.events import Course, Submission
from demo.findings import Finding, Numbers
from demo.progress import Progress
from demo.readback import read_groups
from demo.sending import Account, send_course
from dynamodb_counters import Counters
from examples.leaderboard_declarations import LEADERBOARD, PATH, PLAYERS

_TOP: Final = 10
_SHOWN: Final = 2


@dataclass(frozen=True)
class Leaderboard:
    """The leaderboard example.

    Parameters
    ----------
    counters : Counters
        The runtime, bound to the example's table.
    game : Course of Submission
        What players do.
    """

    counters: Counters
    game: Course[Submission]

    @property
    def _truth(self) -> LeaderboardTruth:
        return leaderboard_truth(self.game)

    def send(self, progress: Progress) -> Account:
        """Have the game played.

        Parameters
        ----------
        progress : Progress
            Told how far it is.

        Returns
        -------
        Account
            What became of the events.
        """
        accept_many, retract = partial(self.counters.accept_many, PATH), partial(self.counters.retract, PATH)
        return send_course(accept_many, retract, self.game, "paths", progress)

    def totals(self) -> dict[str, int]:
        """Read what tells whether everything has been counted."""
        return {"paths": int(self.counters.get(LEADERBOARD, {}).measures["total_paths"])}

    def expected_totals(self) -> dict[str, int]:
        """Work out what the totals must come to."""
        return {"paths": self._truth.total}

    def finding(self, account: Account) -> Finding:
        """Read everything back and hold it against the truth.

        Parameters
        ----------
        account : Account
            What became of the events.

        Returns
        -------
        Finding
            What was found.
        """
        found = read_settled(self._read, lambda numbers: numbers == self._expected(numbers))
        totals, bins, top = found["totals"], found["players_by_paths"], found["top_players"]
        first = sorted(top, key=lambda player: (-top[player], player))[:_SHOWN]
        named = ", ".join(f"{player}: {top[player]:,}" for player in first)
        of_all = f"{totals['total_paths']:,} paths of {totals['active_players']:,} players, 12 of each at most"
        lines = [
            f"leaderboard            {of_all}; first: {named}",
            f"players by paths       {', '.join(f'{paths}: {n:,}' for paths, n in bins.items())}",
        ]
        return Finding("leaderboard", account, answers(self.game), found, self._expected(found), lines)

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
