"""The leaderboard and the pages, on a table in memory that is evaluated anew at each question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest

from demo.check.drain import Silence
from demo.example import Example
from demo.examples.leaderboard.example import Leaderboard
from demo.examples.pages.example import Pages
from demo.trial import Trial
from dynamodb_counters import Aggregate, Counters, Distinct, Event, Group, Outcome, OutcomeStatus, Ranked, evaluate
from examples.leaderboard.declarations import LEADERBOARD, PLAYERS
from examples.pages.declarations import PAGES, TOTAL, VIEWS, VISITORS
from tests.unit.demo.fakes import setup, silent


class Table:
    """Answers like `Counters`, off by what `errors` says of an aggregate."""

    def __init__(self, *declarations: Aggregate | Distinct, errors: Mapping[str, int]) -> None:
        self.declarations = declarations
        self.errors = errors
        self.events: dict[object, tuple[Event, Mapping[str, Any]]] = {}

    def accept_many(self, event: Event, events: Iterable[Mapping[str, Any]]) -> list[Outcome]:
        outcomes = []
        for values in events:
            key = (event.name, *values.values())
            outcomes.append(Outcome(OutcomeStatus.DUPLICATE if key in self.events else OutcomeStatus.ACCEPTED))
            self.events[key] = (event, values)
        return outcomes

    def retract(self, event: Event, values: Mapping[str, Any]) -> bool:
        return self.events.pop((event.name, *values.values()), None) is not None

    def _groups(self, aggregate: Aggregate) -> list[Group]:
        return evaluate(self.declarations, self.events.values()).get(aggregate.name, [])

    def get(self, aggregate: Aggregate, values: Mapping[str, Any] | None = None) -> Group:
        values = values or {}
        error = self.errors.get(aggregate.name, 0)
        for group in self._groups(aggregate):
            if group.values == values:
                numbers = {name: n + error if isinstance(n, int) else n for name, n in group.measures.items()}
                return Group(values, numbers)
        return Group(values, {name: measure._read(name, {}) for name, measure in aggregate.measures.items()})

    def get_many(self, groups: Iterable[tuple[Aggregate, Mapping[str, Any]]]) -> list[Group]:
        return [self.get(aggregate, values) for aggregate, values in groups]

    def partition(self, aggregates: list[Aggregate]) -> dict[str, list[Group]]:
        return {aggregate.name: [self.get(aggregate)] if self.events else [] for aggregate in aggregates}

    def histogram(self, aggregate: Aggregate, measure: str) -> Any:
        return self.get(aggregate).measures[measure]

    def distinct(self, declared: Distinct) -> int:
        return int(self.get(declared.total).measures["distinct"])

    def top(self, aggregate: Aggregate, count: int) -> list[Ranked]:
        ranked = [Ranked(group.values, group.measures["paths"]) for group in self._groups(aggregate)]
        return sorted(ranked, key=lambda entry: -entry.score)[:count]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demo.check.drain._SETTLE_SECONDS", 0.0)


def _silence() -> Silence:
    return Silence(lambda: 0, seconds=0)


DECLARED = {"leaderboard": (PLAYERS, LEADERBOARD), "pages": (VIEWS, PAGES, TOTAL, VISITORS)}


def _trial(example: Example, **errors: int) -> Trial:
    counters = cast("Counters", Table(*DECLARED[example.name], errors=errors))
    return Trial(example, counters, counters)


def _sent(example: type[Example], **errors: int) -> Trial:
    trial = _trial(example.prepare(setup()), **errors)
    trial.send(silent())
    return trial


@pytest.mark.parametrize(
    ("example", "errors", "wrong"),
    [
        (Leaderboard, {"leaderboard": 1}, {"totals of active_players", "totals of total_paths"}),
        (Leaderboard, {"players": 1}, {"players of player-07"}),
        (Pages, {"total": 1}, {"totals of page views"}),
        (Pages, {"pages": 1}, {"totals of pages"}),
        (Pages, {"visitors": -1}, {"totals of users"}),
        (Pages, {"views": 1}, {"views of page-01"}),
    ],
)
def test_what_is_counted_wrong_is_reported(example: type[Example], errors: dict[str, int], wrong: set[str]) -> None:
    differences = _sent(example, **errors).finding(silent(), _silence()).differences()

    assert wrong <= {line.partition(": ")[2].partition(":")[0] for line in differences}
