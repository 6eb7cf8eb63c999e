"""The leaderboard example: players and their paths, totalled and ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

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
_SHOWN: Final = 5


@dataclass(frozen=True)
class Leaderboard(Example):
    noun: ClassVar[str] = "paths"

    game: Deliveries[Submission]

    @classmethod
    def prepare(cls, setup: Setup) -> Leaderboard:
        return cls(submissions(setup.rng("game"), setup.options.duplicates))

    @cached_property
    def truth(self) -> LeaderboardTruth:
        return LeaderboardTruth(self.game)

    def feeds(self) -> Sequence[Feed]:
        return [Feed(PATH, self.game, "paths")]

    def total(self, counters: Counters) -> int:
        return int(counters.get(LEADERBOARD).measures["total_paths"])

    def expected_total(self) -> int:
        return self.truth.total

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
        totals, top = finding.found["totals"], finding.found["top_players"]
        return [
            f"{'paths':>7}  player",
            *(f"{top[player]:>7,}  {player}" for player in highest(top, _SHOWN)),
            f"{totals['total_paths']:>7,}  of {totals['active_players']:,} players, at most 12 of each",
        ]

    def commands(self) -> Sequence[str]:
        return [f"top {PLAYERS.name}", f"get {LEADERBOARD.name}", f"get {PLAYERS.name} player=player-45"]
