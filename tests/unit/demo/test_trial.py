"""The leaderboard and the pages, on a table in memory that is evaluated anew at each question."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, cast

import pytest

from demo.check.drain import read_settled
from demo.examples.leaderboard.example import Leaderboard
from demo.examples.leaderboard.traffic import submissions
from demo.examples.pages.example import Pages
from demo.examples.pages.traffic import created, visited
from demo.sending.deliveries import Deliveries
from demo.terminal import Progress
from demo.trial import Trial
from dynamodb_counters import Aggregate, Counters, Distinct, Event, Group, Outcome, Ranked, evaluate
from examples.leaderboard.declarations import LEADERBOARD, PLAYERS
from examples.pages.declarations import PAGES, TOTAL, VIEWS, VISITORS


class Table:
    """Answers like `Counters`, off by what `errors` says of an aggregate."""

    def __init__(self, *declarations: Aggregate | Distinct, errors: Mapping[str, int]) -> None:
        self.declarations = declarations
        self.errors = errors
        self.events: dict[object, tuple[Event, Mapping[str, Any]]] = {}

    def accept_many(self, event: Event, events: Iterable[Mapping[str, Any]]) -> list[Outcome]:
        return [Outcome("accepted" if self._insert(event, values) else "duplicate") for values in events]

    def _insert(self, event: Event, values: Mapping[str, Any]) -> bool:
        before = len(self.events)
        self.events.setdefault((event.name, *values.values()), (event, values))
        return len(self.events) > before

    def retract(self, event: Event, values: Mapping[str, Any]) -> bool:
        return self.events.pop((event.name, *values.values()), None) is not None

    def _groups(self, aggregate: Aggregate) -> list[Group]:
        return evaluate(self.declarations, self.events.values()).get(aggregate.name, [])

    def get(self, aggregate: Aggregate, values: Mapping[str, Any]) -> Group:
        error = self.errors.get(aggregate.name, 0)
        for group in self._groups(aggregate):
            if group.values == values:
                numbers = {name: n + error if isinstance(n, int) else n for name, n in group.measures.items()}
                return Group(values, numbers)
        return Group(values, {name: measure.read(name, {}) for name, measure in aggregate.measures.items()})

    def get_many(self, groups: Iterable[tuple[Aggregate, Mapping[str, Any]]]) -> list[Group]:
        return [self.get(aggregate, values) for aggregate, values in groups]

    def group(self, aggregates: list[Aggregate], values: Mapping[str, Any]) -> dict[str, list[Group]]:
        return {aggregate.name: [self.get(aggregate, values)] if self.events else [] for aggregate in aggregates}

    def histogram(self, aggregate: Aggregate, values: Mapping[str, Any], measure: str) -> Mapping[int, int]:
        bins: Mapping[int, int] = self.get(aggregate, values).measures[measure]
        return bins

    def distinct(self, declared: Distinct, values: Mapping[str, Any]) -> int:
        return int(self.get(declared.total, values).measures["distinct"])

    def top(self, aggregate: Aggregate, count: int) -> list[Ranked]:
        ranked = [Ranked(group.values, group.measures["paths"]) for group in self._groups(aggregate)]
        return sorted(ranked, key=lambda entry: -entry.score)[:count]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demo.trial.read_settled", partial(read_settled, sleep=lambda _: None))


def _trial(example: Leaderboard | Pages, table: Table) -> Trial:
    counters = cast("Counters", table)
    return Trial(example, counters, counters)


def _leaderboard(**errors: int) -> Trial:
    example = Leaderboard(submissions(random.Random(1), 0.2))
    return _trial(example, Table(PLAYERS, LEADERBOARD, errors=errors))


def _pages(**errors: int) -> Trial:
    rng = random.Random(1)
    example = Pages(created(rng, 0.2), visited(rng, 0.2))
    return _trial(example, Table(VIEWS, PAGES, TOTAL, VISITORS, errors=errors))


def _progress() -> Progress:
    return Progress(io.StringIO())


@pytest.mark.parametrize("trial", [_leaderboard(), _pages()])
def test_what_is_counted_right_is_found_exact(trial: Trial) -> None:
    trial.send(_progress())
    finding = trial.finding(_progress())

    assert finding.differences() == []
    assert finding.checked == sum(map(len, finding.found.values())) > 20
    assert trial.totals() == trial.example.expected_totals()
    assert all(len(line) < 110 for line in trial.example.lines(finding))


@pytest.mark.parametrize(
    ("trial", "wrong"),
    [
        (_leaderboard(leaderboard=1), {"totals of active_players", "totals of total_paths"}),
        (_leaderboard(players=1), {"players of player-07"}),
        (_pages(total=1), {"totals of page views"}),
        (_pages(pages=1), {"totals of pages"}),
        (_pages(visitors=-1), {"totals of users"}),
        (_pages(views=1), {"views of page-01"}),
    ],
)
def test_what_is_counted_wrong_is_reported(trial: Trial, wrong: set[str]) -> None:
    trial.send(_progress())

    differences = trial.finding(_progress()).differences()

    assert wrong <= {line.partition(": ")[2].partition(":")[0] for line in differences}


def test_equal_scores_may_be_named_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = _leaderboard()
    trial.send(_progress())
    ranked = Table.top(cast("Table", trial.reader), PLAYERS, 45)

    last = ranked[9].score
    others = [entry for entry in ranked if entry.score == last and entry not in ranked[:10]]
    monkeypatch.setattr(trial.reader, "top", lambda *_, **__: [*ranked[:9], *others][:10])
    assert others
    assert trial.finding(_progress()).differences() == []

    monkeypatch.setattr(trial.reader, "top", lambda *_, **__: ranked[1:11])
    assert trial.finding(_progress()).differences()


def test_examples_without_events_count_nothing() -> None:
    trials = [
        _trial(Leaderboard(Deliveries()), Table(PLAYERS, LEADERBOARD, errors={})),
        _trial(Pages(Deliveries(), Deliveries()), Table(VIEWS, PAGES, TOTAL, VISITORS, errors={})),
    ]

    for trial in trials:
        trial.send(_progress())
        assert trial.finding(_progress()).differences() == []
