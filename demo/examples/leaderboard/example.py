"""The leaderboard example: players and their paths, totalled and ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from demo.check.readback import read_groups
from demo.example import Example, Finding, Numbers, Reading, highest
from demo.examples.leaderboard.traffic import Submission, submissions
from demo.examples.leaderboard.truth import LeaderboardTruth
from demo.options import Setup
from demo.sending.deliveries import Deliveries
from demo.sending.send import Feed
from demo.terminal import Progress
from dynamodb_counters import Counters
from examples.leaderboard.declarations import LEADERBOARD, PATH, PLAYERS

_TOP: Final = 10
_SHOWN: Final = 2


@dataclass(frozen=True)
class Leaderboard(Example):
    game: Deliveries[Submission]

    @classmethod
    def prepare(cls, setup: Setup) -> Leaderboard:
        return cls(submissions(setup.rng("game"), setup.options.duplicates))

    @cached_property
    def truth(self) -> LeaderboardTruth:
        return LeaderboardTruth(self.game)

    def feeds(self) -> Sequence[Feed]:
        return [Feed(PATH, self.game, "paths")]

    def totals(self, counters: Counters) -> dict[str, int]:
        return {"paths": int(counters.get(LEADERBOARD).measures["total_paths"])}

    def expected_totals(self) -> dict[str, int]:
        return {"paths": self.truth.total}

    def read(self, counters: Counters, progress: Progress) -> Reading:  # noqa: ARG002
        # One Query returns everything on the page but the ranking.
        groups = counters.partition([LEADERBOARD])["leaderboard"]
        measures = groups[0].measures if groups else counters.get(LEADERBOARD).measures
        histogram = counters.get(LEADERBOARD)["players_by_paths"]
        ranked = counters.top(PLAYERS, count=_TOP)
        return Reading(
            {
                "totals": {name: int(measures[name]) for name in ("active_players", "total_paths")},
                "players_by_paths": {str(paths): int(n) for paths, n in measures["players_by_paths"].items()},
                "histogram": {str(paths): int(n) for paths, n in histogram.items()},
                "players": read_groups(counters, PLAYERS, "player", self.truth.players),
                "top_scores": {str(rank): int(entry.score) for rank, entry in enumerate(ranked, start=1)},
                "top_players": {entry.values["player"]: int(entry.score) for entry in ranked},
            }
        )

    def expected(self, reading: Reading) -> Numbers:
        truth = self.truth
        return {
            "totals": {"active_players": truth.active, "total_paths": truth.total},
            "players_by_paths": truth.by_paths,
            "histogram": truth.by_paths,
            "players": truth.players,
            "top_scores": {str(rank): score for rank, score in enumerate(truth.best(_TOP), start=1)},
            # Any of the players with equal scores may be named, but only with the right score.
            "top_players": {player: truth.players.get(player, 0) for player in reading.counts["top_players"]},
        }

    def lines(self, finding: Finding) -> Sequence[str]:
        totals, bins, top = (finding.found[what] for what in ("totals", "players_by_paths", "top_players"))
        named = ", ".join(f"{player}: {top[player]:,}" for player in highest(top, _SHOWN))
        of_all = f"{totals['total_paths']:,} paths of {totals['active_players']:,} players, at most 12 of each"
        return [
            f"leaderboard            {of_all}; first: {named}",
            f"players by paths       {', '.join(f'{paths}: {n:,}' for paths, n in bins.items())}",
        ]
